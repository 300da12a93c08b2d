/**
 * Text of others, made safe to read: what a reader could not see, or what would change how the text around it reads, is
 * shown as a mark.
 */

export interface Piece {
  readonly text: string;
  /** A character that was made visible, with its name. */
  readonly mark?: string;
}

const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** Whether text has nothing to mark, which is the usual case. */
export function isPlain(text: string): boolean {
  return text.search(HIDDEN) < 0;
}

export function visible(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const { 0: found, index } of text.matchAll(HIDDEN)) {
    if (found === "\r" && text[index + 1] === "\n") {
      if (index > from) pieces.push({ text: text.slice(from, index) });
      from = index + 1;
      continue;
    }
    if (index > from) pieces.push({ text: text.slice(from, index) });
    pieces.push(markOf(found));
    from = index + found.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from) });
  return pieces;
}

/** The same as one string, for places that hold no elements (titles, canvas, attributes). */
export function visibleString(text: string): string {
  return isPlain(text)
    ? text
    : visible(text)
        .map((piece) => piece.text)
        .join("");
}

function markOf(character: string): Piece {
  const code = character.codePointAt(0) ?? 0;
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  if (code < 0x20) return { text: String.fromCodePoint(0x2400 + code), mark: name };
  if (code === 0x7f) return { text: "\u2421", mark: name };
  return { text: `‹${name}›`, mark: name };
}
