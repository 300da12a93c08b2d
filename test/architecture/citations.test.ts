/** Comments, tests and documents cite only what is in the repository, each in one form (docs/style.md). */
import { readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { parseSync } from "oxc-parser";
import { describe, expect, it } from "vitest";
import { REQUIREMENTS } from "../../conformance/index.js";
import { filesBelow } from "./prose.js";

const ROOT = resolve(import.meta.dirname, "../..");
const FOLDERS = ["src", "test", "docs", "bench", "examples", "conformance"];
const DECISIONS = "docs/decisions.md";
const LAWS = "docs/architecture.md";
const NOTES = "docs/compatibility.md";
/** These define citations or show what one looks like, so they do not count as users of an anchor. */
const DEFINING = [DECISIONS, NOTES, "docs/style.md"];

const CITATION =
  /\b[Dd]ecision (?<decision>[A-Z]\d+)\b|\b[Ll]aw (?<law>\d+)\b|\bREF-(?<note>\d+)\b|\[(?<rows>[A-Z]+-[A-Z]+-\d+(?:, [A-Z]+-[A-Z]+-\d+)*)\]/g;

/** Forms of the past, several numbers behind one word, and documents that are not in the repository. */
const OLD_FORMS = [
  /\b[Dd]ecisions [A-J]\d*\b/g,
  /\b[Ll]aws \d+/g,
  /\b(?:[Dd]ecision [A-Z]\d+|[Ll]aw \d+)(?:,| and| or| to|–) ?[A-Z]?\d+\b/g,
  /\bmail\.md\b/g,
  /\bmap[-]mail\b/g,
  /\bagent-swarm\.md\b/g,
  /\b[Ss]eed 0\d\d\b/g,
  /\b(?:of the|the|by its) seed(?:'s| (?:only|has|puts|knows|shows|is silent))/gi,
  /\b[Cc]hecklist items?\b/g,
];

interface Source {
  readonly file: string;
  /** With line breaks inside a comment or paragraph as single spaces, so that a citation may wrap. */
  readonly text: string;
  readonly comments: readonly string[];
}

const unwrapped = (text: string) => text.replace(/\n\s*(?:\*(?!\/)|\/\/)?\s*/g, " ");

const sources: readonly Source[] = FOLDERS.flatMap((folder) =>
  [...filesBelow(join(ROOT, folder), /\.(?:[cm]?[jt]s|tsx|md)$/)].map((path) => {
    const text = readFileSync(path, "utf8");
    const file = relative(ROOT, path).split(sep).join("/");
    return { file, text: unwrapped(text), comments: path.endsWith(".md") ? [] : commentsOf(path, text) };
  }),
);

/** Line comments that follow each other directly are one comment. */
function commentsOf(path: string, text: string): string[] {
  const found: { value: string; end: number; line: boolean }[] = [];
  for (const { type, value, start, end } of parseSync(path, text).comments) {
    const last = found.at(-1);
    const line = type === "Line";
    if (line && last?.line === true && /^\n[ \t]*$/.test(text.slice(last.end, start))) {
      last.value += ` ${value}`;
      last.end = end;
    } else found.push({ value, end, line });
  }
  return found.map(({ value }) => unwrapped(value));
}

function anchorsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(/<a id="([^"]+)"><\/a>/g)].map(([, id = ""]) => id);
}

/** What a text cites, as `file#anchor` or as the id of a requirement. */
function citationsIn(text: string): string[] {
  return [...text.matchAll(CITATION)].flatMap(({ groups: { decision, law, note, rows } = {} }) => {
    if (decision !== undefined) return [`${DECISIONS}#${decision.toLowerCase()}`];
    if (law !== undefined) return [`${LAWS}#law-${law}`];
    if (note !== undefined) return [`${NOTES}#ref-${note}`];
    return rows?.split(", ") ?? [];
  });
}

/** Whether a comment cites and says nothing: a reader must not need the other document to understand it. */
function isOnlyACitation(comment: string): boolean {
  if (citationsIn(comment).length === 0) return false;
  const words = comment.replace(CITATION, " ").match(/[A-Za-z]{2,}/g) ?? [];
  return words.filter((word) => !/^(?:and|see|compare|to)$/i.test(word)).length < 2;
}

describe("citations", () => {
  const anchors = [DECISIONS, LAWS, NOTES].flatMap((file) => anchorsOf(file).map((id) => `${file}#${id}`));

  it("lead to an anchor or a requirement that exists", () => {
    const known = new Set([...anchors, ...REQUIREMENTS.map(({ id }) => id)]);
    const unknown = sources.flatMap(({ file, text }) =>
      citationsIn(text).flatMap((target) => (known.has(target) ? [] : [`${file} cites ${target}`])),
    );
    expect(unknown).toEqual([]);
  });

  it("exist for every decision and every compatibility note", () => {
    const cited = new Set(
      sources.filter(({ file }) => !DEFINING.includes(file)).flatMap(({ text }) => citationsIn(text)),
    );
    const unused = anchors.filter((anchor) => !anchor.startsWith(LAWS) && !cited.has(anchor));
    expect(unused).toEqual([]);
  });

  it("have anchors that occur once", () => {
    expect(anchors.filter((anchor, index) => anchors.indexOf(anchor) !== index)).toEqual([]);
  });

  it("have no older form", () => {
    const old = sources.flatMap(({ file, text }) =>
      OLD_FORMS.flatMap((form) => [...text.matchAll(form)].map(([match]) => `${file}: ${match}`)),
    );
    expect(old).toEqual([]);
  });

  it("are never all that a comment says", () => {
    const bare = sources.flatMap(({ file, comments }) =>
      comments.filter(isOnlyACitation).map((comment) => `${file}: ${comment.trim()}`),
    );
    expect(bare).toEqual([]);
  });
});
