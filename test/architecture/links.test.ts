/** Links between Markdown files lead to files and headings that exist, and so do the paths that they name. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { expect, it } from "vitest";
import { filesBelow } from "./prose.js";

const ROOT = resolve(import.meta.dirname, "../..");
const FOLDERS = ["docs", "src", "examples", "deploy", "schemas", "bench"];

const pages = [
  ...readdirSync(ROOT)
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(ROOT, name)),
  ...FOLDERS.flatMap((folder) => [...filesBelow(join(ROOT, folder), /\.md$/)]),
];

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, "").replace(/`[^`\n]*`/g, "code");
}

/** Anchors as GitHub makes them from headings, and those that the page sets itself. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id));
  for (const [, heading = ""] of text.replace(/^```[\s\S]*?^```/gm, "").matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

function brokenLinks(page: string): string[] {
  const links = withoutCode(readFileSync(page, "utf8")).matchAll(/\]\(([^)\s]+)\)/g);
  return [...links].flatMap(([, target = ""]) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [path = "", anchor] = decodeURIComponent(target).split("#");
    const file = path === "" ? page : resolve(dirname(page), path);
    const broken = `${relative(ROOT, page)}: ${target}`;
    if (!existsSync(file)) return [broken];
    if (anchor === undefined || !file.endsWith(".md")) return [];
    return anchorsOf(readFileSync(file, "utf8")).has(anchor) ? [] : [broken];
  });
}

/** Paths from the repository's root or from the page, in code spans; not patterns, and not files that a run creates. */
function missingPaths(page: string): string[] {
  const text = readFileSync(page, "utf8").replace(/^```[\s\S]*?^```/gm, "");
  const paths = text.matchAll(
    /`((?:src|test|docs|examples|scripts|schemas|deploy|bench|conformance)\/[\w./-]*)`/g,
  );
  return [...paths].flatMap(([, path = ""]) => {
    const exists = [ROOT, dirname(page)].some((folder) => existsSync(join(folder, path)));
    return exists || path.startsWith("bench/results/") ? [] : [`${relative(ROOT, page)}: ${path}`];
  });
}

/** Pages about the past. */
const HISTORY = ["CHANGELOG.md", "what-moved.md"];

it("paths that Markdown files name exist", () => {
  const present = pages.filter((page) => !HISTORY.includes(basename(page)));
  expect(present.flatMap(missingPaths)).toEqual([]);
});

it("links between Markdown files lead to files and headings that exist", () => {
  expect(pages.length).toBeGreaterThan(50);
  expect(pages.flatMap(brokenLinks)).toEqual([]);
});
