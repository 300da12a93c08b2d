/** Finds wording that docs/style.md rules out, in comments, messages, test titles and Markdown. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { parseSync, Visitor } from "oxc-parser";

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly phrase: string;
}

/** Regular expressions; each matches whole words in any case. */
const PHRASES = [
  "whoever",
  "whomever",
  "nobody",
  "somebody",
  "for ever",
  "any more",
  "anew",
  // "There is none" is plain English; "a name that is none" is not.
  "(?<!there\\s)(?:is|are) none",
  "of (?:ours|theirs)",
  "over there",
  "under way",
  "go(?:es)? on",
  "stands? still",
  "so many",
  "vouch(?:es)? for",
  "at its word",
  "(?:is|are) told",
  "(?:behavi|col|fav|neighb|hon)our\\w*",
  "(?:recogn|normal|initial|synchron|summar|serial|author|organ|optim)is(?:e|es|ed|er|ing|ation)",
] as const;
const PATTERN = new RegExp(`\\b(?:${PHRASES.join("|")})\\b`, "gi");

/** Identifiers, keys and wire values have no spaces; sentences do. */
const SENTENCE = /\S\s+\S+\s+\S/;

export function* filesBelow(folder: string, extensions: RegExp): Generator<string> {
  for (const name of readdirSync(folder).sort()) {
    if (name === "node_modules" || name === "data") continue;
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* filesBelow(path, extensions);
    else if (extensions.test(name)) yield path;
  }
}

export function proseFindings(root: string, folders: readonly string[]): Finding[] {
  return folders.flatMap((folder) =>
    [...filesBelow(join(root, folder), /\.(?:ts|md)$/)].flatMap((path) => {
      const text = readFileSync(path, "utf8");
      const file = relative(root, path).split(sep).join("/");
      const parts = path.endsWith(".md") ? markdownText(text) : sourceText(path, text);
      return parts.flatMap(({ start, value }) =>
        [...value.matchAll(PATTERN)].map((match) => ({
          file,
          line: text.slice(0, start + match.index).split("\n").length,
          phrase: match[0].toLowerCase(),
        })),
      );
    }),
  );
}

interface Part {
  readonly start: number;
  readonly value: string;
}

/** The whole page without code: blanked, so that positions stay. */
function markdownText(text: string): Part[] {
  const blank = (code: string) => code.replace(/[^\n]/g, " ");
  return [{ start: 0, value: text.replace(/^```[\s\S]*?^```/gm, blank).replace(/`[^`\n]*`/g, blank) }];
}

function sourceText(path: string, text: string): Part[] {
  const { program, comments } = parseSync(path, text);
  const parts: Part[] = comments.map(({ start, value }) => ({
    start,
    value: value.replace(/`[^`\n]*`/g, " "),
  }));
  const add = (start: number, value: string) => {
    if (SENTENCE.test(value)) parts.push({ start, value });
  };
  new Visitor({
    Literal(node) {
      if (typeof node.value === "string") add(node.start, node.value);
    },
    TemplateElement(node) {
      add(node.start, node.value.raw);
    },
  }).visit(program);
  return parts;
}
