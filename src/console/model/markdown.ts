/**
 * A small part of Markdown, as data: paragraphs, headings, lists, code, emphasis, tables, quotes and links. There are no
 * images and no HTML. The views make elements of it, never markup.
 */

export type Inline =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "strong" | "emphasis"; readonly children: readonly Inline[] }
  | {
      readonly kind: "link";
      readonly href: string;
      readonly host: string;
      readonly children: readonly Inline[];
    };

export type Block =
  | { readonly kind: "paragraph"; readonly children: readonly Inline[] }
  | { readonly kind: "heading"; readonly level: number; readonly children: readonly Inline[] }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "list"; readonly ordered: boolean; readonly items: readonly (readonly Inline[])[] }
  | { readonly kind: "quote"; readonly children: readonly Inline[] }
  | {
      readonly kind: "table";
      readonly head: readonly (readonly Inline[])[];
      readonly rows: readonly (readonly (readonly Inline[])[])[];
    }
  | { readonly kind: "rule" };

const MOST_DEPTH = 6;

export function parseMarkdown(text: string): Block[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks: Block[] = [];
  let at = 0;
  const line = (index: number) => lines[index] ?? "";
  while (at < lines.length) {
    const current = line(at);
    if (current.trim() === "") {
      at++;
    } else if (/^\s{0,3}```/.test(current)) {
      const code: string[] = [];
      at++;
      while (at < lines.length && !/^\s{0,3}```\s*$/.test(line(at))) code.push(line(at++));
      at++;
      blocks.push({ kind: "code", text: code.join("\n") });
    } else if (/^#{1,6}\s/.test(current)) {
      const level = current.indexOf(" ");
      blocks.push({ kind: "heading", level, children: parseInline(current.slice(level).trim()) });
      at++;
    } else if (/^\s{0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/.test(current)) {
      blocks.push({ kind: "rule" });
      at++;
    } else if (/^\s{0,3}>/.test(current)) {
      const quote: string[] = [];
      while (/^\s{0,3}>/.test(line(at))) quote.push(line(at++).replace(/^\s{0,3}>\s?/, ""));
      blocks.push({ kind: "quote", children: parseInline(quote.join("\n")) });
    } else if (isItem(current)) {
      const ordered = /^\s*\d/.test(current);
      const items: string[] = [];
      while (at < lines.length && (isItem(line(at)) || (/^\s+\S/.test(line(at)) && items.length > 0))) {
        if (isItem(line(at))) items.push(line(at).replace(/^\s*(?:[-*+]|\d{1,9}[.)])\s+/, ""));
        else items.push(`${items.pop() ?? ""}\n${line(at).trim()}`);
        at++;
      }
      blocks.push({ kind: "list", ordered, items: items.map((item) => parseInline(item)) });
    } else if (
      current.includes("|") &&
      /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/.test(line(at + 1)) &&
      line(at + 1).includes("-")
    ) {
      const head = cells(current);
      const rows: Inline[][][] = [];
      at += 2;
      while (line(at).includes("|")) rows.push(cells(line(at++)).map((cell) => parseInline(cell)));
      blocks.push({ kind: "table", head: head.map((cell) => parseInline(cell)), rows });
    } else {
      const words: string[] = [];
      while (at < lines.length && line(at).trim() !== "" && !startsBlock(line(at), words.length > 0))
        words.push(line(at++));
      blocks.push({ kind: "paragraph", children: parseInline(words.join("\n")) });
    }
  }
  return blocks;
}

function isItem(line: string): boolean {
  return /^\s*(?:[-*+]|\d{1,9}[.)])\s+\S/.test(line);
}

function startsBlock(line: string, inside: boolean): boolean {
  return inside && (/^\s{0,3}(?:```|>|#{1,6}\s)/.test(line) || isItem(line));
}

function cells(line: string): string[] {
  return line
    .trim()
    .replace(/^\|/, "")
    .replace(/\|$/, "")
    .split("|")
    .map((cell) => cell.trim());
}

/** Every piece is found by looking ahead once, so the time is linear but for nesting, which is bounded. */
function parseInline(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  let plain = "";
  const flush = () => {
    if (plain !== "") found.push({ kind: "text", text: plain });
    plain = "";
  };
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at, at + 2_100);
    const piece = depth < MOST_DEPTH ? pieceAt(rest, depth) : undefined;
    if (piece === undefined) {
      plain += text[at] ?? "";
      at++;
    } else {
      flush();
      found.push(piece.inline);
      at += piece.length;
    }
  }
  flush();
  return found;
}

const STARTS = /^[`*_[h\\]/;

function pieceAt(
  rest: string,
  depth: number,
): { readonly inline: Inline; readonly length: number } | undefined {
  if (!STARTS.test(rest)) return undefined;
  const escaped = /^\\([\\`*_[\]()#|>-])/.exec(rest);
  if (escaped !== null) return { inline: { kind: "text", text: escaped[1] ?? "" }, length: 2 };
  const code = /^`([^`\n]{1,2000})`/.exec(rest);
  if (code !== null) return { inline: { kind: "code", text: code[1] ?? "" }, length: code[0].length };
  const strong = /^(?:\*\*|__)(?=\S)([^*_\n]{1,2000}?)(?<=\S)(?:\*\*|__)/.exec(rest);
  if (strong !== null) {
    return {
      inline: { kind: "strong", children: parseInline(strong[1] ?? "", depth + 1) },
      length: strong[0].length,
    };
  }
  const emphasis = /^([*_])(?=\S)([^*_\n]{1,2000}?)(?<=\S)\1(?!\w)/.exec(rest);
  if (emphasis !== null) {
    return {
      inline: { kind: "emphasis", children: parseInline(emphasis[2] ?? "", depth + 1) },
      length: emphasis[0].length,
    };
  }
  const link = /^\[([^\]\n]{1,500})\]\(([^)\s]{1,1500})\)/.exec(rest);
  if (link !== null) {
    const target = safeLink(link[2] ?? "");
    if (target === undefined) return undefined;
    return {
      inline: { kind: "link", ...target, children: parseInline(link[1] ?? "", MOST_DEPTH) },
      length: link[0].length,
    };
  }
  const bare = /^https?:\/\/[^\s<>"'`)\]]{1,1500}/.exec(rest);
  if (bare !== null) {
    const shown = bare[0].replace(/[.,;:!?]+$/, "");
    const target = safeLink(shown);
    if (target === undefined) return undefined;
    return {
      inline: { kind: "link", ...target, children: [{ kind: "text", text: shown }] },
      length: shown.length,
    };
  }
  return undefined;
}

/** Only the web, and never with a name and a password. */
export function safeLink(text: string): { readonly href: string; readonly host: string } | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  if (url.username !== "" || url.password !== "") return undefined;
  return { href: url.href, host: url.host };
}
