/** "Did you mean …?" for names that were mistyped. */

/** The candidate nearest to `name`, or `undefined` when none is near enough to be what was meant. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  // A third of the letters may be wrong: more, and short names would suggest anything.
  const limit = Math.max(1, Math.floor(name.length / 3));
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const distance = distanceBetween(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** A missing or additional ending counts as one mistake, whatever its length. */
function distanceBetween(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  if (shorter >= 4 && (a.startsWith(b) || b.startsWith(a))) return a === b ? 0 : 1;
  return editDistance(a, b);
}

/** A hint for an unknown name: the nearest known one, else the list of them. */
export function didYouMean(name: string, candidates: Iterable<string>): string | undefined {
  const known = [...new Set(candidates)];
  const near = nearest(name, known);
  if (near !== undefined) return `did you mean '${near}'?`;
  if (known.length === 0) return undefined;
  const shown = known.slice(0, 12).map((candidate) => `'${candidate}'`);
  return `known: ${shown.join(", ")}${known.length > shown.length ? ", …" : ""}`;
}

/** The error message for an unknown field of some input. */
export function unknownField(name: string, known: Iterable<string>, shown = name): string {
  const hint = didYouMean(name, known);
  return `unknown field '${shown}'${hint === undefined ? "" : `: ${hint}`}`;
}

/** Insertions, deletions, substitutions and swaps of adjacent characters that turn one text into the other. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, at(beforeLast, column - 2) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
