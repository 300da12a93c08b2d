/** The words of lanes: names above them, and one recycled element for each row in view, which is what screen readers read. */
import type { Drawing, Lane } from "../model/lanes.js";
import { visibleString } from "../model/visible-text.js";
import { duration, short } from "../model/words.js";
import { agentColor, colorOf } from "./colors.js";
import { type LanesScene, TRACK } from "./lanes-canvas.js";
import type { ShownLanes } from "./lanes-fold.js";
import { type LanesInput, ROW } from "./lanes-rows.js";

const HEAD = 46;
/** A third line: what agents do. */
const DOING = 17;
const SHORTEST_LABEL = 124;

interface Slot {
  readonly row: HTMLElement;
  readonly n: HTMLElement;
  readonly since: HTMLElement;
  readonly label: HTMLElement;
}

export class LanesHead {
  readonly element = element("div", "lanes-head");
  readonly #heads: HTMLElement[] = [];
  #key = "";

  constructor() {
    this.element.setAttribute("aria-hidden", "true");
  }

  draw(
    { lanes, folded }: ShownLanes,
    gutter: number,
    { first, step }: { readonly first: number; readonly step: number },
    scrollLeft: number,
    doing: LanesInput["doing"],
  ): void {
    const key = `${JSON.stringify(doing && [...doing])} ${lanes.map((lane) => `${lane.id} ${lane.turns} ${lane.tokens}`).join("\n")} ${folded.length} ${gutter} ${step} ${scrollLeft}`;
    if (key === this.#key) return;
    this.#key = key;
    this.element.style.height = `${doing === undefined ? HEAD : HEAD + DOING}px`;
    while (this.#heads.length < lanes.length + 3) {
      const made = element("div", "lane-name");
      made.append(element("b"), element("span"), element("span", "doing"));
      this.#heads.push(made);
      this.element.append(made);
    }
    for (const [index, made] of this.#heads.entries()) {
      const lane = lanes[index - 2];
      const [name, note, does] = made.children;
      if (name === undefined || note === undefined || does === undefined) continue;
      does.textContent = visibleString(doing?.get(lane?.id ?? "") ?? "");
      const isFold = index === lanes.length + 2 && folded.length > 0;
      made.hidden = (index >= lanes.length + 2 && !isFold) || (index < 2 && gutter < 100);
      if (index < 2) {
        made.className = "lane-name gutter-name";
        note.textContent = index === 0 ? "#" : "since";
        made.style.left = index === 0 ? "22px" : "66px";
        made.style.width = index === 0 ? "14px" : "48px";
      } else if (isFold) {
        made.className = "lane-name fold";
        name.className = "";
        name.textContent = `+${folded.length}`;
        note.textContent = "not in view";
        made.style.left = `${first + step * (index - 2.5) - scrollLeft}px`;
        made.style.width = `${step}px`;
        made.title = visibleString(folded.map(({ id }) => id).join(", "));
      } else if (lane !== undefined) {
        made.className = `lane-name ${lane.kind}`;
        name.className =
          lane.kind === "person" ? "person" : lane.kind === "foreign" ? "foreign" : `c${lane.color % 8}-name`;
        name.textContent = visibleString(lane.name);
        note.textContent =
          lane.kind === "person"
            ? "person"
            : lane.kind === "foreign"
              ? `@${visibleString(lane.swarm ?? "")}`
              : headNote(lane, step);
        made.style.left = `${first + step * (index - 2.5) - scrollLeft}px`;
        made.style.width = `${step}px`;
        made.title = visibleString([lane.id, doing?.get(lane.id)].filter(Boolean).join(": "));
        made.style.setProperty(
          "--mark",
          lane.kind === "agent"
            ? agentColor(lane.color)
            : colorOf(lane.kind === "person" ? "--text" : "--agent-7"),
        );
      }
    }
  }
}

export class LanesLabels {
  readonly #window: HTMLElement;
  readonly #slots: Slot[] = [];

  /** @param window where the rows are put */
  constructor(window: HTMLElement) {
    this.#window = window;
  }

  draw(scene: LanesScene): void {
    const { input, rows, first, last, x, y, gutter } = scene;
    const live =
      input.thinking.length > 0 && !input.filter.failures
        ? input.thinking.filter(({ agent }) => input.filter.lane === undefined || input.filter.lane === agent)
        : [];
    const needed = Math.max(0, last - first + 1) + live.length;
    while (this.#slots.length < needed) this.#slots.push(this.#makeSlot());
    let used = 0;
    for (let place = first; place <= last; place++) {
      const row = rows.at(place);
      const slot = this.#slots[used];
      if (row === undefined || slot === undefined) continue;
      used++;
      slot.row.hidden = false;
      slot.row.style.transform = `translateY(${y(place)}px)`;
      slot.row.dataset.n = String(row.n);
      slot.row.id = `entry-${row.n}`;
      slot.row.setAttribute("aria-selected", String(row.n === input.selected));
      slot.row.setAttribute("aria-posinset", String(place + 1));
      slot.row.setAttribute("aria-setsize", String(rows.count));
      slot.row.classList.toggle("after", input.asOf !== undefined && row.n > input.asOf);
      slot.n.textContent = String(row.n);
      const words = row.gap >= 20 && place > 0 ? `+${duration(row.gap).replace(" ", "")}` : "";
      slot.since.textContent = gutter < 100 ? "" : words;
      drawLabel(slot.label, row.drawing, scene);
    }
    for (const [index, { agent, at }] of live.entries()) {
      const slot = this.#slots[used];
      if (slot === undefined) continue;
      used++;
      slot.row.hidden = false;
      slot.row.style.transform = `translateY(${y(rows.count - 1) + ROW}px)`;
      delete slot.row.dataset.n;
      slot.row.id = `live-${index}`;
      slot.row.setAttribute("aria-selected", "false");
      slot.n.textContent = "";
      slot.since.textContent = "";
      slot.label.className = "lane-label turn live";
      setText(slot.label, duration(Math.max(0, input.now - at)));
      place(slot.label, x(agent) + 10, 120);
    }
    for (let index = used; index < this.#slots.length; index++) {
      const slot = this.#slots[index];
      if (slot !== undefined) slot.row.hidden = true;
    }
  }

  #makeSlot(): Slot {
    const row = element("div", "lane-row");
    row.setAttribute("role", "option");
    const [n, since, label] = [
      element("span", "lane-n"),
      element("span", "lane-since"),
      element("span", "lane-label"),
    ];
    row.append(n, since, label);
    this.#window.append(row);
    return { row, n, since, label };
  }
}

function drawLabel(
  label: HTMLElement,
  drawing: Drawing,
  { input, lanes, folded, x, gutter, width, step }: LanesScene,
): void {
  const { spans } = input.model;
  /** Across the line of the next lane, which shines through, or up to the edge. A row has one label, so none overlap. */
  const cell = Math.max(SHORTEST_LABEL, step * 1.8);
  const room = (lane: string, offset: number) =>
    Math.min(
      lane === lanes.at(-1)?.id && folded === undefined ? 320 : cell - offset,
      width - x(lane) - offset - 10,
    );
  const placeAction = ({ lane, span }: { readonly lane: string; readonly span: number }) => {
    const offset = 17 + (spans[span]?.track ?? 0) * TRACK;
    place(label, x(lane) + offset, Math.max(60, room(lane, offset)));
  };
  switch (drawing.kind) {
    case "message": {
      const from = x(drawing.from);
      const ends = drawing.to.map(x);
      const left = Math.min(from, ...(ends.length > 0 ? ends : [from]));
      const right = Math.max(from, ...(ends.length > 0 ? ends : [from]));
      label.className = `lane-label message ${drawing.style}`;
      setText(label, drawing.label);
      place(label, left + 11, Math.max(right - left - 16, Math.min(cell - 11, width - left - 20)));
      return;
    }
    case "turn":
      label.className = `lane-label turn ${drawing.failed ? "failed" : ""}`;
      setText(label, drawing.label);
      place(label, x(drawing.lane) + 10, Math.max(60, room(drawing.lane, 10)));
      return;
    case "action":
      label.className = "lane-label action";
      setText(label, drawing.label);
      placeAction(drawing);
      return;
    case "action-end":
      label.className = `lane-label action-end ${drawing.outcome}`;
      setText(label, drawing.label);
      placeAction(drawing);
      return;
    case "mark": {
      const at = x(drawing.lane);
      const onLeft = at > width * 0.66;
      label.className = `lane-label mark ${drawing.tone} ${onLeft ? "left" : ""}`;
      setText(label, drawing.label);
      if (onLeft) {
        const wide = Math.min(Math.max(cell - 12, 190), at - gutter - 10);
        place(label, at - 10 - wide, wide);
      } else place(label, at + 12, room(drawing.lane, 12));
      return;
    }
    case "band":
    case "note":
      label.className = `lane-label ${drawing.kind} ${drawing.tone} ${drawing.kind === "band" && drawing.line ? "thin" : ""}`;
      setText(label, drawing.label);
      place(label, gutter + 4, width - gutter - 28);
  }
}

/** @param width pixels of the lane */
function headNote(lane: Lane, width: number): string {
  if (lane.turns === 0) return "no turn yet";
  const turns = `${lane.turns} ${lane.turns === 1 ? "turn" : "turns"}`;
  if (lane.tokens === 0) return lane.failed > 0 ? `${turns} · ${lane.failed} failed` : turns;
  return `${turns} · ${short(lane.tokens)}${width >= 124 ? " tokens" : width >= 104 ? " tok" : ""}`;
}

function element(tag: "div" | "span" | "b", name = ""): HTMLElement {
  const made = document.createElement(tag);
  made.className = name;
  return made;
}

function setText(label: HTMLElement, text: string): void {
  const shown = visibleString(text);
  if (label.textContent !== shown) label.textContent = shown;
}

function place(label: HTMLElement, left: number, width: number): void {
  label.style.left = `${left}px`;
  label.style.width = `${Math.max(20, width)}px`;
}
