/** Lanes as files: an SVG picture and a Mermaid sequence diagram. */
import type { LanesModel } from "./lanes.js";
import { visibleString } from "./visible-text.js";

function xml(text: string): string {
  return visibleString(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const ROW = 26;
const GUTTER = 64;
const LANE = 150;

export function svgOf(model: LanesModel, title: string): string {
  const { lanes, rows, spans } = model;
  const x = new Map(lanes.map((lane, index) => [lane.id, GUTTER + LANE * (index + 0.5)]));
  const at = (id: string) => x.get(id) ?? 0;
  const width = GUTTER + LANE * lanes.length + 40;
  const top = 70;
  const y = (row: number) => top + row * ROW;
  const height = y(rows.length) + 20;
  const parts: string[] = [];
  for (const lane of lanes) {
    const dashed = lane.kind === "foreign" ? ' stroke-dasharray="3 3"' : "";
    parts.push(
      `<line x1="${at(lane.id)}" y1="${top - 10}" x2="${at(lane.id)}" y2="${height - 10}" stroke="#dfe2e8"${dashed}/>`,
    );
    parts.push(
      `<text x="${at(lane.id)}" y="44" text-anchor="middle" font-weight="600">${xml(lane.id)}</text>`,
    );
  }
  for (const span of spans) {
    const bottom = span.to === undefined ? height - 20 : y(span.to) + 13;
    const failed = span.outcome === "failed";
    const [fill, line] = failed
      ? ["#fdeceb", "#b3241c"]
      : span.kind === "turn"
        ? ["#c9d7f6", "#7f9ae0"]
        : ["#bfe3d9", "#3d9280"];
    const left = span.kind === "turn" ? at(span.lane) - 4 : at(span.lane) + 6;
    parts.push(
      `<rect x="${left}" y="${y(span.from) + 16}" width="${span.kind === "turn" ? 8 : 6}" height="${Math.max(4, bottom - y(span.from) - 16)}" rx="2.5" fill="${fill}" stroke="${line}"/>`,
    );
  }
  for (const [index, row] of rows.entries()) {
    const middle = y(index) + 13;
    parts.push(
      `<text x="34" y="${middle + 4}" text-anchor="end" fill="#4a5162" font-size="11">${row.n}</text>`,
    );
    const { drawing } = row;
    if (drawing.kind === "message") {
      const from = at(drawing.from);
      const color =
        drawing.style === "response"
          ? "#626a7b"
          : drawing.style === "completion"
            ? "#12693a"
            : drawing.style === "answer"
              ? "#8a4b00"
              : drawing.style === "interrupt"
                ? "#b3241c"
                : "#2450c8";
      const dashed = drawing.style === "response" ? ' stroke-dasharray="4 3"' : "";
      for (const to of drawing.to) {
        const end = at(to) + (at(to) >= from ? -5 : 5);
        parts.push(
          `<line x1="${from}" y1="${middle + 7}" x2="${end}" y2="${middle + 7}" stroke="${color}" stroke-width="1.5"${dashed}/>`,
        );
        const back = at(to) >= from ? -6 : 6;
        parts.push(
          `<path d="M${end + back} ${middle + 3} L${end} ${middle + 7} L${end + back} ${middle + 11}" fill="none" stroke="${color}" stroke-width="1.5"/>`,
        );
      }
      const left = Math.min(from, ...drawing.to.map(at));
      parts.push(`<text x="${left + 10}" y="${middle + 2}">${xml(drawing.label.slice(0, 60))}</text>`);
    } else if (drawing.kind === "band" || drawing.kind === "note") {
      parts.push(
        `<text x="${GUTTER}" y="${middle + 4}" font-weight="600">${xml(drawing.label.slice(0, 120))}</text>`,
      );
    } else {
      const small = drawing.kind === "turn" ? 10 : 17;
      parts.push(
        `<text x="${at(drawing.lane) + small}" y="${middle + 4}" fill="#4a5162" font-size="11">${xml(drawing.label.slice(0, 60))}</text>`,
      );
    }
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="Inter, Helvetica, Arial, sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/><text x="16" y="22" font-size="14" font-weight="600">${xml(title)}</text>${parts.join("")}</svg>\n`;
}

/** Mermaid has no way to quote: what has a meaning there is replaced. */
function word(text: string): string {
  return visibleString(text)
    .replaceAll(/[;#:<>]/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(0, 80);
}

export function mermaidOf(model: LanesModel): string {
  const names = new Map(model.lanes.map((lane, index) => [lane.id, `p${index}`]));
  const name = (id: string) => names.get(id) ?? "p0";
  const all = [...names.values()];
  const over = all.length > 1 ? `${all[0]},${all.at(-1)}` : (all[0] ?? "p0");
  const lines = ["sequenceDiagram", "  autonumber"];
  for (const lane of model.lanes)
    lines.push(`  ${lane.kind === "person" ? "actor" : "participant"} ${name(lane.id)} as ${word(lane.id)}`);
  for (const { drawing } of model.rows) {
    if (drawing.kind === "message") {
      const arrow = drawing.style === "response" || drawing.style === "completion" ? "-->>" : "->>";
      for (const to of drawing.to)
        lines.push(`  ${name(drawing.from)}${arrow}${name(to)}: ${word(drawing.label) || "message"}`);
    } else if (drawing.kind === "action")
      lines.push(`  Note right of ${name(drawing.lane)}: ${word(drawing.label)}`);
    else if (drawing.kind === "band") lines.push(`  Note over ${over}: ${word(drawing.label)}`);
  }
  return `${lines.join("\n")}\n`;
}
