/** Lists in pages that are bounded by number and by bytes. */
import { MAX_PAGE_BYTES, MapError, roughSize } from "../../conversations/index.js";

/** The largest page. Larger limits are lowered to this. */
const MAX_PAGE = 1_000;
const DEFAULT_PAGE = 500;

export interface PageParams {
  readonly limit?: number | undefined;
  /** The id of the last item of the previous page. */
  readonly cursor?: string | undefined;
}

export interface Page<Item, View> {
  readonly items: readonly Item[];
  readonly views: readonly View[];
  /** Present if more items follow. */
  readonly rest: { readonly nextCursor?: string };
}

/**
 * The items after the cursor, as many as fit, and at least one.
 * @throws MapError INVALID_PARAMS for a cursor that is not in the list, or no longer
 */
export function pageOf<Item, View>(
  items: Iterable<Item>,
  idOf: (item: Item) => string,
  viewOf: (item: Item) => View,
  { limit = DEFAULT_PAGE, cursor }: PageParams,
): Page<Item, View> {
  const taken: Item[] = [];
  const views: View[] = [];
  let found = cursor === undefined;
  let size = 0;
  for (const item of items) {
    if (!found) {
      found = idOf(item) === cursor;
      continue;
    }
    const last = taken.at(-1);
    if (last !== undefined && (taken.length >= Math.min(limit, MAX_PAGE) || size > MAX_PAGE_BYTES)) {
      return { items: taken, views, rest: { nextCursor: idOf(last) } };
    }
    const view = viewOf(item);
    size += roughSize(view);
    taken.push(item);
    views.push(view);
  }
  if (!found) throw new MapError("INVALID_PARAMS", "cursor: unknown");
  return { items: taken, views, rest: {} };
}

/** Several lists in one answer, which together are bounded by bytes. */
export class Related<Item> {
  readonly #viewOf: (item: Item) => object;
  readonly #cut: string[] = [];
  #size = 0;

  constructor(viewOf: (item: Item) => object) {
    this.#viewOf = viewOf;
  }

  /** Names of the lists that are not complete. */
  get cut(): readonly string[] {
    return this.#cut;
  }

  views(name: string, items: readonly Item[]): object[] {
    const views: object[] = [];
    for (const item of items) {
      if (this.#size > MAX_PAGE_BYTES) {
        this.#cut.push(name);
        break;
      }
      const view = this.#viewOf(item);
      this.#size += roughSize(view);
      views.push(view);
    }
    return views;
  }
}
