/**
 * Which lanes have a column. Of more than ten, those without traffic in view are folded into one, the longest unused
 * first: what is in view always has its column, and columns move as little as possible.
 */
import { BLOCK, type Drawing, type Lane } from "../model/lanes.js";
import type { LanesInput, LanesRows } from "./lanes-rows.js";

/** More are folded. */
export const MOST_LANES = 10;

export interface ShownLanes {
  readonly lanes: readonly Lane[];
  readonly folded: readonly Lane[];
}

export class LanesFold {
  /** By lane: the last time it was in view. */
  readonly #seen = new Map<string, number>();
  #time = 0;
  #shown = new Set<string>();

  /** @param first place of the first row in view */
  choose(input: LanesInput, rows: LanesRows, first: number, last: number): ShownLanes {
    const { lanes } = input.model;
    if (lanes.length <= MOST_LANES || input.unfolded) return { lanes, folded: [] };
    const needed = inView(input, rows, first, last);
    for (const { id, kind } of lanes) if (kind === "person" && needed.size < MOST_LANES) needed.add(id);
    this.#time++;
    for (const id of needed) this.#seen.set(id, this.#time);
    const candidates = [...new Set([...this.#shown, ...lanes.map(({ id }) => id)])].filter(
      (id) => !needed.has(id) && input.model.laneOf(id) !== undefined,
    );
    // Those that had a column keep it as long as there is room.
    candidates.sort(
      (a, b) =>
        Number(this.#shown.has(b)) - Number(this.#shown.has(a)) ||
        (this.#seen.get(b) ?? 0) - (this.#seen.get(a) ?? 0),
    );
    this.#shown = new Set([...needed, ...candidates.slice(0, Math.max(0, MOST_LANES - needed.size))]);
    return {
      lanes: lanes.filter(({ id }) => this.#shown.has(id)),
      folded: lanes.filter(({ id }) => !this.#shown.has(id)),
    };
  }
}

function inView({ model, thinking }: LanesInput, rows: LanesRows, first: number, last: number): Set<string> {
  const found = new Set(thinking.map(({ agent }) => agent));
  for (let place = first; place <= last; place++) {
    const row = rows.at(place);
    if (row !== undefined) for (const id of lanesIn(row.drawing)) found.add(id);
  }
  const from = rows.indexAt(first) ?? 0;
  const to = rows.indexAt(last) ?? 0;
  const spans = new Set(model.open);
  for (let block = Math.floor(from / BLOCK); block <= Math.floor(Math.max(from, to) / BLOCK); block++)
    for (const index of model.spansIn(block)) spans.add(index);
  for (const index of spans) {
    const span = model.spans[index];
    if (span !== undefined && span.from <= to && (span.to ?? to) >= from) found.add(span.lane);
  }
  return found;
}

function lanesIn(drawing: Drawing): readonly string[] {
  if (drawing.kind === "message") return [drawing.from, ...drawing.to];
  return "lane" in drawing ? [drawing.lane] : [];
}
