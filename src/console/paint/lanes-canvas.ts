/** Paints lanes: lines, bars and marks of the rows in view, on one canvas of the size of the view. */
import type { Drawing, Lane, Row, Span, Tone } from "../model/lanes.js";
import { BLOCK } from "../model/lanes.js";
import { colorOf } from "./colors.js";
import { BREAK, type LanesInput, type LanesRows, ROW } from "./lanes-rows.js";

/** Narrower displays have no column for the time between rows. */
export const PHONE = 640;
/** Between actions that run at the same time. */
export const TRACK = 9;

/** What is in view. */
export interface LanesScene {
  readonly input: LanesInput;
  readonly rows: LanesRows;
  /** Those that have a column. */
  readonly lanes: readonly Lane[];
  /** Where the column of the others is. */
  readonly folded: number | undefined;
  readonly width: number;
  readonly height: number;
  readonly gutter: number;
  /** Between two lanes. */
  readonly step: number;
  /** Places. */
  readonly first: number;
  readonly last: number;
  readonly x: (lane: string) => number;
  readonly y: (place: number) => number;
}

export function paintLanes(paint: CanvasRenderingContext2D, scene: LanesScene): void {
  const { input, rows, lanes, folded, width, height, gutter, first, last, x, y } = scene;
  paint.lineWidth = 1;
  for (const lane of lanes) {
    const at = Math.round(x(lane.id)) + 0.5;
    paint.strokeStyle = colorOf("--guide");
    paint.setLineDash(lane.kind === "foreign" ? [3, 3] : []);
    line(paint, at, 0, at, height);
  }
  if (folded !== undefined) {
    const at = Math.round(folded) + 0.5;
    paint.setLineDash([1, 4]);
    line(paint, at, 0, at, height);
  }
  paint.setLineDash([]);
  if (input.selected !== undefined) {
    const top = y(rows.placeOfEntry(input.selected));
    paint.fillStyle = colorOf("--accent-soft");
    paint.fillRect(0, top, width, ROW);
    paint.fillStyle = colorOf("--accent");
    paint.fillRect(0, top, 2, ROW);
  }
  drawSpans(paint, scene);
  for (let place = first; place <= last; place++) {
    const row = rows.at(place);
    if (row === undefined) continue;
    paint.globalAlpha = input.asOf !== undefined && row.n > input.asOf ? 0.28 : 1;
    if (width >= PHONE) drawGap(paint, row, place === 0, y(place));
    drawRow(paint, row.drawing, y(place), x, gutter, width);
    if (input.clock) drawBreak(paint, row, rows.at(place - 1), y(place), gutter, width);
  }
  paint.globalAlpha = 1;
  drawThinking(paint, scene);
}

function drawBreak(
  paint: CanvasRenderingContext2D,
  row: Row,
  before: Row | undefined,
  y: number,
  gutter: number,
  width: number,
): void {
  if (before === undefined || row.at - before.at <= BREAK) return;
  paint.strokeStyle = colorOf("--line-strong");
  paint.setLineDash([2, 4]);
  line(paint, gutter, y - ROW / 2, width - 12, y - ROW / 2);
  paint.setLineDash([]);
}

function drawSpans(paint: CanvasRenderingContext2D, scene: LanesScene): void {
  const { rows, first, last } = scene;
  const { model, filter, asOf } = scene.input;
  const from = rows.indexAt(first) ?? 0;
  const to = rows.indexAt(last) ?? 0;
  const seen = new Set<number>(model.open);
  for (let block = Math.floor(from / BLOCK); block <= Math.floor(Math.max(from, to) / BLOCK); block++) {
    for (const index of model.spansIn(block)) seen.add(index);
  }
  for (const index of seen) {
    const span = model.spans[index];
    if (span === undefined || span.from > to || (span.to ?? Number.POSITIVE_INFINITY) < from) continue;
    if (span.kind === "action" && (!filter.actions || filter.failures)) continue;
    if (filter.failures && span.outcome === "ok") continue;
    if (filter.lane !== undefined && span.lane !== filter.lane) continue;
    const end = span.to === undefined ? undefined : model.rows[span.to]?.n;
    const later =
      asOf !== undefined &&
      (end ?? Number.POSITIVE_INFINITY) > asOf &&
      (model.rows[span.from]?.n ?? 0) > asOf;
    paint.globalAlpha = later ? 0.28 : 1;
    drawSpan(paint, span, scene);
  }
  paint.globalAlpha = 1;
}

function drawSpan(
  paint: CanvasRenderingContext2D,
  span: Span,
  { input, rows, height, x: xOf, y }: LanesScene,
): void {
  const { model } = input;
  const x = xOf(span.lane);
  const begin = model.rows[span.from]?.drawing.kind;
  const top = Math.max(
    -20,
    y(rows.placeOf(span.from)) + (span.kind === "action" ? 7 : begin === "message" ? 20 : 13),
  );
  const bottom = Math.min(
    height + 20,
    span.to === undefined
      ? y(rows.count - 1) + ROW
      : y(rows.placeOf(span.to)) + (span.kind === "action" ? 19 : 13),
  );
  if (bottom <= top) return;
  const wide = span.kind === "action" ? 6 : 8;
  const left = span.kind === "action" ? x + 6.5 + span.track * TRACK : x - 4;
  const failed = span.outcome === "failed";
  paint.beginPath();
  paint.roundRect(left, top, wide, bottom - top, 2.5);
  paint.fillStyle = failed ? colorOf("--bad-soft") : colorOf(span.kind === "action" ? "--action" : "--bar");
  paint.fill();
  if (span.queued !== undefined) {
    const until = Math.min(bottom, y(rows.placeOf(span.queued)) + 13);
    if (until > top) hatch(paint, left, top, wide, until - top);
  }
  paint.strokeStyle = failed
    ? colorOf("--bad")
    : colorOf(span.kind === "action" ? "--action-line" : "--bar-line");
  paint.lineWidth = 1;
  paint.setLineDash(span.to === undefined ? [3, 2] : []);
  paint.beginPath();
  paint.roundRect(left, top, wide, bottom - top, 2.5);
  paint.stroke();
  paint.setLineDash([]);
}

function drawRow(
  paint: CanvasRenderingContext2D,
  drawing: Drawing,
  top: number,
  x: (lane: string) => number,
  gutter: number,
  width: number,
): void {
  const middle = top + ROW / 2;
  switch (drawing.kind) {
    case "message": {
      const at = Math.round(top + 20) + 0.5;
      const from = x(drawing.from);
      const color = colorOf(ARROW[drawing.style]);
      paint.strokeStyle = color;
      paint.fillStyle = color;
      paint.lineWidth = 1.5;
      const ends = drawing.to.map(x);
      for (const end of ends) {
        const right = end >= from;
        const [start, stop] = [from + (right ? 4 : -4), end + (right ? -5 : 5)];
        paint.setLineDash(drawing.style === "response" ? [4, 3] : []);
        line(paint, start, at, stop, at);
        paint.setLineDash([]);
        arrow(paint, stop, at, right ? 1 : -1);
      }
      paint.beginPath();
      if (drawing.manual) paint.rect(from - 3, at - 3, 6, 6);
      else paint.arc(from, at, 3, 0, Math.PI * 2);
      paint.fillStyle = colorOf("--ground");
      paint.fill();
      paint.stroke();
      paint.lineWidth = 1;
      return;
    }
    case "turn": {
      paint.fillStyle = drawing.failed ? colorOf("--bad") : colorOf("--bar-line");
      paint.beginPath();
      paint.arc(x(drawing.lane), middle, 3.5, 0, Math.PI * 2);
      paint.fill();
      if (drawing.hollow) {
        paint.fillStyle = colorOf("--ground");
        paint.beginPath();
        paint.arc(x(drawing.lane), middle, 1.7, 0, Math.PI * 2);
        paint.fill();
      }
      return;
    }
    case "mark": {
      const at = x(drawing.lane);
      paint.strokeStyle = colorOf(TONE[drawing.tone]);
      paint.fillStyle = paint.strokeStyle;
      paint.lineWidth = 1.5;
      paint.beginPath();
      if (drawing.shape === "zigzag") {
        paint.moveTo(at - 9, middle + 3);
        for (let step = 0; step < 5; step++)
          paint.lineTo(at - 9 + (step + 0.5) * 3.6, middle + (step % 2 === 0 ? -4 : 4));
        paint.stroke();
      } else if (drawing.shape === "bracket") {
        paint.moveTo(at - 3, middle - 6);
        paint.lineTo(at - 7, middle - 6);
        paint.lineTo(at - 7, middle + 6);
        paint.lineTo(at - 3, middle + 6);
        paint.stroke();
      } else if (drawing.shape !== "none") {
        paint.arc(at, middle, drawing.shape === "dot" ? 2.5 : 3.5, 0, Math.PI * 2);
        if (drawing.shape === "hollow") {
          paint.fillStyle = colorOf("--ground");
          paint.fill();
          paint.stroke();
        } else paint.fill();
      }
      paint.lineWidth = 1;
      return;
    }
    case "band": {
      paint.beginPath();
      if (drawing.line) {
        paint.strokeStyle = colorOf(TONE[drawing.tone]);
        line(paint, gutter - 8, Math.round(middle) + 0.5, width - 10, Math.round(middle) + 0.5);
        return;
      }
      const [fill, edge] = BAND[drawing.tone];
      paint.roundRect(gutter - 8, top + 2.5, width - gutter - 2, ROW - 5, 5);
      paint.fillStyle = colorOf(fill);
      paint.fill();
      paint.strokeStyle = colorOf(edge);
      paint.stroke();
      return;
    }
    case "action":
    case "action-end":
    case "note":
      return;
  }
}

function drawThinking(paint: CanvasRenderingContext2D, { input, rows, x, y }: LanesScene): void {
  const { thinking, model, filter } = input;
  if (thinking.length === 0 || filter.failures) return;
  const bottom = y(rows.count - 1) + ROW + ROW / 2;
  for (const { agent, since } of thinking) {
    if (filter.lane !== undefined && filter.lane !== agent) continue;
    const row = model.rowAt(since);
    const begin = model.rows[row]?.drawing.kind;
    const top = y(rows.placeOf(Math.max(0, row))) + (begin === "message" ? 20 : 13);
    paint.beginPath();
    paint.roundRect(x(agent) - 4, top, 8, Math.max(6, bottom - top), [2.5, 2.5, 0, 0]);
    paint.fillStyle = colorOf("--bar");
    paint.globalAlpha = 0.6;
    paint.fill();
    paint.globalAlpha = 1;
    paint.setLineDash([3, 2]);
    paint.strokeStyle = colorOf("--bar-line");
    paint.stroke();
    paint.setLineDash([]);
  }
}

const ARROW: Readonly<Record<Extract<Drawing, { kind: "message" }>["style"], string>> = {
  request: "--accent",
  response: "--text-3",
  broadcast: "--accent",
  interrupt: "--bad",
  completion: "--good",
  answer: "--wait",
};

const TONE: Readonly<Record<Tone, string>> = {
  neutral: "--text-3",
  wait: "--wait",
  good: "--good",
  bad: "--bad",
  accent: "--accent",
};

const BAND: Readonly<Record<Tone, readonly [string, string]>> = {
  neutral: ["--well", "--line-strong"],
  wait: ["--wait-soft", "--wait-line"],
  good: ["--good-soft", "--good"],
  bad: ["--bad-soft", "--bad"],
  accent: ["--accent-soft", "--accent-line"],
};

function drawGap(paint: CanvasRenderingContext2D, row: Row, first: boolean, top: number): void {
  if (first || row.gap < 20) return;
  // Logarithmic: 20 ms is a point, a minute is the whole width.
  const share = Math.min(1, Math.log10(row.gap / 20) / Math.log10(60_000 / 20));
  paint.fillStyle = row.gap > 5_000 ? colorOf("--wait") : colorOf("--line-strong");
  paint.beginPath();
  paint.roundRect(42, top + 11, 3 + share * 22, 3.5, 1.75);
  paint.fill();
}

function line(paint: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  paint.beginPath();
  paint.moveTo(x1, y1);
  paint.lineTo(x2, y2);
  paint.stroke();
}

function arrow(paint: CanvasRenderingContext2D, x: number, y: number, direction: number): void {
  paint.beginPath();
  paint.moveTo(x - 6 * direction, y - 4);
  paint.lineTo(x, y);
  paint.lineTo(x - 6 * direction, y + 4);
  paint.stroke();
}

function hatch(
  paint: CanvasRenderingContext2D,
  left: number,
  top: number,
  width: number,
  height: number,
): void {
  paint.save();
  paint.beginPath();
  paint.rect(left, top, width, height);
  paint.clip();
  paint.fillStyle = colorOf("--ground");
  paint.globalAlpha *= 0.65;
  paint.fillRect(left, top, width, height);
  paint.globalAlpha = 1;
  paint.strokeStyle = colorOf("--bar-line");
  paint.lineWidth = 1;
  for (let at = top - width; at < top + height; at += 5) line(paint, left, at + width, left + width, at);
  paint.restore();
}
