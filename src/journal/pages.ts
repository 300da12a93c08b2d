/** Reading much without holding up anybody: page by page, with the event loop's other work in between. */
import type { JournalRow, Loop } from "./ports.js";

/** Rows of the first page: few until it is known how large they are. */
const FIRST_PAGE = 16;
const LONGEST_PAGE = 500;
/** A page is to hold about so many characters. */
const PAGE_CHARACTERS = 1024 * 1024;

/** All rows after a place, which is what `placeOf` says of a row: its last number, or its position. */
export async function* pages(
  read: (after: number, limit: number) => Promise<readonly JournalRow[]>,
  after: number,
  placeOf: (row: JournalRow) => number,
  loop: Loop,
): AsyncGenerator<readonly JournalRow[], void, undefined> {
  let place = after;
  for (let limit = FIRST_PAGE; ; ) {
    const rows = await read(place, limit);
    const newest = rows.at(-1);
    if (newest !== undefined) {
      place = placeOf(newest);
      yield rows;
    }
    if (rows.length < limit) return;
    let size = 1;
    for (const { data } of rows) size += data.length;
    limit = Math.max(1, Math.min(LONGEST_PAGE, Math.floor((limit * PAGE_CHARACTERS) / size)));
    await new Promise<void>((resolve) => loop.soon(resolve));
  }
}

export const byNumber = ({ last }: JournalRow): number => last;
export const byPosition = ({ position }: JournalRow): number => position;
