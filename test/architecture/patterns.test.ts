/**
 * Regular expressions that see text from others take linear time: no repetition of what already repeats, and no
 * repetition at the end of a pattern that may begin anywhere. Patterns of others run in RE2, which is linear by design.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync, Visitor } from "oxc-parser";
import { expect, it } from "vitest";
import { filesBelow } from "./prose.js";

const SOURCE = fileURLToPath(new URL("../../src", import.meta.url));

/** What handles text from other programs before or without a check of its length. */
const FOLDERS = ["auth", "conversations", "doors", "extension", "federation", "http", "mail"];

/** Patterns for what the operator configures. */
const OPERATORS = /(?:\/settings|\/a2a\/extension)\.ts$/;

/** A group that contains a repetition without an upper limit and is itself repeated: `(a+)*`. */
const NESTED = /\((?:[^()\\]|\\.)*[+*](?:[^()\\]|\\.)*\)(?:[+*]|\{\d+,\}?)/;
/** A repetition before the end, in a pattern that is not bound to the beginning: `a+$`. */
const TRAILING = /^(?!\^).*(?<!\\)[+*]\$$/;

function patternsIn(file: string): string[] {
  const found: string[] = [];
  const { program } = parseSync(file, readFileSync(file, "utf8"));
  new Visitor({
    Literal(node) {
      if ("regex" in node) found.push(node.regex.pattern);
    },
  }).visit(program);
  return found;
}

/** A character class repeats nothing, whatever it contains. */
function withoutClasses(pattern: string): string {
  return pattern.replaceAll(/\[(?:[^\]\\]|\\.)*\]/g, "x");
}

it("no pattern for text from others can take more than linear time", () => {
  const suspects: string[] = [];
  let count = 0;
  for (const folder of FOLDERS) {
    for (const file of filesBelow(join(SOURCE, folder), /\.ts$/)) {
      if (file.endsWith(".test.ts") || OPERATORS.test(file)) continue;
      for (const pattern of patternsIn(file)) {
        count++;
        const plain = withoutClasses(pattern);
        if (NESTED.test(plain) || TRAILING.test(plain)) suspects.push(`${file}: /${pattern}/`);
      }
    }
  }
  expect(count).toBeGreaterThan(30);
  expect(suspects).toEqual([]);
});

it("the check recognizes patterns that backtrack", () => {
  for (const bad of ["(a+)+", "(?:x*y)*z", "([a-z]+)*$", "(\\w+\\s?){2,}", "\\s+$", "/+$"]) {
    const plain = withoutClasses(bad);
    expect(NESTED.test(plain) || TRAILING.test(plain), bad).toBe(true);
  }
  for (const good of ["^a+$", "[+*]", "(?:[0-9]{4})*", "^(\\S+) *$", "(-[0-9a-f]{4}){3}", "a\\+$"]) {
    const plain = withoutClasses(good);
    expect(NESTED.test(plain) || TRAILING.test(plain), good).toBe(false);
  }
});
