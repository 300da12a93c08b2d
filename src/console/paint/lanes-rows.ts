/** Which rows of the lanes are shown, where they stand, and which one is the next. */
import type { Drawing, LanesModel, Row } from "../model/lanes.js";

export const ROW = 26;
/** In clock order: pixels for a second, and from which gap on a pause is drawn as a break. */
const PER_SECOND = 40;
export const BREAK = 3_000;

export interface LanesFilter {
  readonly actions: boolean;
  readonly failures: boolean;
  readonly lane: string | undefined;
}

export interface Thinking {
  readonly agent: string;
  /** The entry that it works on. */
  readonly since: number;
  readonly at: number;
}

export interface LanesInput {
  readonly model: LanesModel;
  readonly filter: LanesFilter;
  readonly clock: boolean;
  readonly selected: number | undefined;
  /** Entries after it are faint. */
  readonly asOf: number | undefined;
  readonly thinking: readonly Thinking[];
  /** What agents do now or at the cursor, by lane; undefined when the task has ended and nothing is looked back at. */
  readonly doing: ReadonlyMap<string, string> | undefined;
  /** All lanes have a column, however many they are. */
  readonly unfolded: boolean;
  readonly now: number;
}

/** A place is the how-many-th shown row it is; a row is its index in the model. */
export class LanesRows {
  #input: LanesInput | undefined;
  /** Rows that pass the filter; undefined if all do. */
  #order: number[] | undefined;
  /** For each row of the model the place of the last shown row up to it. */
  #places: number[] = [];
  #taken = 0;
  #filterKey = "";
  #offsets: number[] = [];
  #offsetsOf: "journal" | "clock" | undefined;

  /** Whether rows stand elsewhere with this input: another model or filter. */
  moves(input: LanesInput): boolean {
    return this.#input?.model !== input.model || this.#filterKey !== JSON.stringify(input.filter);
  }

  /** In time proportional to the rows that are new. */
  take(input: LanesInput): void {
    if (this.moves(input)) {
      const { actions, failures, lane } = input.filter;
      this.#filterKey = JSON.stringify(input.filter);
      this.#order = actions && !failures && lane === undefined ? undefined : [];
      this.#places = [];
      this.#taken = 0;
      this.#offsetsOf = undefined;
    }
    this.#input = input;
    this.#extend(input);
  }

  get count(): number {
    return this.#order?.length ?? this.#input?.model.rows.length ?? 0;
  }

  /** Pixels of all of them, with one for turns that run. */
  get height(): number {
    const live = (this.#input?.thinking.length ?? 0) > 0 ? ROW : 0;
    return this.yOf(this.count - 1) + ROW + live + 18;
  }

  at(place: number): Row | undefined {
    const index = this.indexAt(place);
    return index === undefined ? undefined : this.#input?.model.rows[index];
  }

  indexAt(place: number): number | undefined {
    return this.#order === undefined ? place : this.#order[place];
  }

  placeOf(row: number): number {
    return this.#order === undefined ? row : (this.#places[row] ?? -1);
  }

  placeOfEntry(n: number): number {
    return this.#input === undefined ? -1 : this.placeOf(this.#input.model.rowAt(n));
  }

  /** The entry of the shown row before or after an entry. */
  step(n: number | undefined, by: number): number | undefined {
    const { count } = this;
    const place = n === undefined ? (by > 0 ? -1 : count) : this.placeOfEntry(n);
    return this.at(Math.max(0, Math.min(count - 1, place + by)))?.n;
  }

  yOf(place: number): number {
    if (this.#offsetsOf === "clock") return this.#offsets[Math.max(0, place)] ?? 0;
    return place * ROW;
  }

  /** The first shown row whose lower edge is below `y`. */
  placeAt(y: number): number {
    if (this.#offsetsOf !== "clock") return Math.floor(y / ROW);
    let low = 0;
    let high = this.#offsets.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#offsets[middle] ?? 0) + ROW <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #extend({ model, filter, clock }: LanesInput): void {
    const { rows } = model;
    if (this.#order !== undefined) {
      for (; this.#taken < rows.length; this.#taken++) {
        const row = rows[this.#taken];
        if (row !== undefined && isShown(row.drawing, filter)) this.#order.push(this.#taken);
        this.#places.push(this.#order.length - 1);
      }
    }
    const mode = clock ? "clock" : "journal";
    if (this.#offsetsOf !== mode) {
      this.#offsetsOf = mode;
      this.#offsets = [];
    }
    if (!clock) return;
    for (let place = this.#offsets.length; place < this.count; place++) {
      const row = this.at(place);
      const before = this.at(place - 1);
      const top = place === 0 ? 0 : (this.#offsets[place - 1] ?? 0);
      const gap = row === undefined || before === undefined ? 0 : row.at - before.at;
      this.#offsets.push(
        place === 0 ? 0 : top + (gap > BREAK ? ROW * 2 : Math.max(ROW, (gap / 1_000) * PER_SECOND)),
      );
    }
  }
}

function isShown(drawing: Drawing, filter: LanesFilter): boolean {
  if (filter.failures) {
    return (
      (drawing.kind === "turn" && drawing.failed) ||
      (drawing.kind === "action-end" && drawing.outcome !== "ok") ||
      ((drawing.kind === "mark" || drawing.kind === "band") &&
        (drawing.tone === "bad" || drawing.tone === "wait"))
    );
  }
  if (!filter.actions && (drawing.kind === "action" || drawing.kind === "action-end")) return false;
  if (filter.lane === undefined) return true;
  if (drawing.kind === "message") return drawing.from === filter.lane || drawing.to.includes(filter.lane);
  return "lane" in drawing ? drawing.lane === filter.lane : true;
}
