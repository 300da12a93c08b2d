/** Splits a line like a shell: words, quotes, backslashes. Expands nothing. */

/**
 *
 * @throws SyntaxError for an unclosed quote
 */
export function tokenize(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: '"' | "'" | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const char = line.charAt(at);
    if (quote !== undefined) {
      if (char === quote) quote = undefined;
      else if (char === "\\" && quote === '"' && /["\\]/.test(line.charAt(at + 1))) {
        at += 1;
        word = `${word ?? ""}${line.charAt(at)}`;
      } else word = `${word ?? ""}${char}`;
    } else if (char === '"' || char === "'") {
      quote = char;
      // Quotes make a word even if it is empty.
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === "\\" && at + 1 < line.length) {
      at += 1;
      word = `${word ?? ""}${line.charAt(at)}`;
    } else word = `${word ?? ""}${char}`;
  }
  if (quote !== undefined) throw new SyntaxError(`unclosed quote ${quote}`);
  if (word !== undefined) words.push(word);
  return words;
}
