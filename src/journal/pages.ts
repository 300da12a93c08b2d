/** Reads many rows in pages, so that the event loop does other work in between. */
import type { JournalRow, Loop } from "./ports.js";

/** Rows of the first page: few until it is known how large they are. */
const FIRST_PAGE = 16;
const LONGEST_PAGE = 500;
/** The intended size of a page: a few milliseconds of work, because everybody waits meanwhile. */
const PAGE_CHARACTERS = 256 * 1024;

/** All rows after a location. `placeOf` returns the location of a row: its last number, or its position. */
export async function* pages(
  read: (after: number, limit: number, characters: number) => Promise<readonly JournalRow[]>,
  after: number,
  placeOf: (row: JournalRow) => number,
  loop: Loop,
): AsyncGenerator<readonly JournalRow[], void, undefined> {
  let place = after;
  for (let limit = FIRST_PAGE; ; ) {
    const rows = await read(place, limit, PAGE_CHARACTERS);
    const newest = rows.at(-1);
    if (newest !== undefined) {
      place = placeOf(newest);
      yield rows;
    }
    let size = 1;
    for (const { data } of rows) size += data.length;
    // A page with fewer rows is the last one, unless its size ended it.
    if (rows.length < limit && size <= PAGE_CHARACTERS) return;
    limit = Math.max(1, Math.min(LONGEST_PAGE, Math.floor((rows.length * PAGE_CHARACTERS) / size)));
    await new Promise<void>((resolve) => loop.soon(resolve));
  }
}

export const byNumber = ({ last }: JournalRow): number => last;
export const byPosition = ({ position }: JournalRow): number => position;
