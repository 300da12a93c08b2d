import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { layout } from "./graph.js";
import { type Block, type Inline, parseMarkdown, safeLink } from "./markdown.js";
import { isPlain, visible, visibleString } from "./visible-text.js";
import { ago, duration, firstLine, short } from "./words.js";

function* inlinesOf(blocks: readonly Block[]): Generator<Inline> {
  function* walk(children: readonly Inline[]): Generator<Inline> {
    for (const child of children) {
      yield child;
      if ("children" in child) yield* walk(child.children);
    }
  }
  for (const block of blocks) {
    if ("children" in block) yield* walk(block.children);
    else if (block.kind === "list") for (const item of block.items) yield* walk(item);
    else if (block.kind === "table")
      for (const row of [block.head, ...block.rows]) for (const cell of row) yield* walk(cell);
  }
}

describe("Markdown", () => {
  it("becomes paragraphs, lists, code, tables and links", () => {
    const blocks = parseMarkdown(
      "# Title\n\nSome **bold** and `code`, see https://example.com/a.\n\n- one\n- two\n\n```js\n<b>\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n> quote",
    );
    expect(blocks.map(({ kind }) => kind)).toEqual([
      "heading",
      "paragraph",
      "list",
      "code",
      "table",
      "quote",
    ]);
    const link = [...inlinesOf(blocks)].find(({ kind }) => kind === "link");
    expect(link).toMatchObject({ href: "https://example.com/a", host: "example.com" });
  });

  it.each([
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>1</script>)",
    "[x](//evil.example)",
    "![x](https://evil.example/leak.png)",
    "[x](https://user:pass@evil.example/)",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:1'>x</a>",
  ])("makes no link that is not of the web, no image and no element of %s", (text) => {
    const found = [...inlinesOf(parseMarkdown(text))];
    for (const inline of found) {
      if (inline.kind === "link") expect(safeLink(inline.href)).toBeDefined();
    }
    const shown = found.map((inline) => ("text" in inline ? inline.text : "")).join("");
    if (!text.startsWith("![")) expect(shown).toContain(text.slice(0, 4));
  });

  it("of any text ends, and every link is safe", () => {
    const nasty = fc.string({
      unit: fc.constantFrom("*", "_", "`", "[", "]", "(", ")", "h", "|", "-", "\n", " ", "a", "\\", ">", "#"),
      maxLength: 400,
    });
    fc.assert(
      fc.property(fc.oneof(nasty, fc.string()), (text) => {
        for (const inline of inlinesOf(parseMarkdown(text))) {
          if (inline.kind === "link") expect(inline.href).toMatch(/^https?:\/\//);
        }
      }),
    );
  });
});

describe("text of others", () => {
  it("shows what a reader could not see", () => {
    expect(visibleString("a\u202Eb")).toBe("a‹U+202E›b");
    expect(visibleString("\u001b[31mred")).toBe("␛[31mred");
    expect(visibleString("zero\u200bwidth")).toBe("zero‹U+200B›width");
    expect(
      visible("a\r\nb")
        .map(({ text }) => text)
        .join(""),
    ).toBe("a\nb");
    expect(isPlain("Grüße,\n\t日本 👋")).toBe(true);
    expect(isPlain("\ud800")).toBe(false);
  });

  it("never keeps a character that changes the direction of text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(visibleString(text)).not.toMatch(/(?![\t\n])[\p{Cc}\p{Cf}]/u);
      }),
    );
  });
});

describe("words", () => {
  it("say times and numbers briefly", () => {
    expect([35, 1_280, 14_800, 192_000, 7_500_000, 273_600_000].map(duration)).toEqual([
      "35 ms",
      "1.28 s",
      "14.8 s",
      "3 m 12 s",
      "2 h 5 m",
      "3 d 4 h",
    ]);
    expect([0, 4_000, 720_000].map(ago)).toEqual(["now", "4 s", "12 m"]);
    expect([452, 1_249, 33_400, 7_200_000].map(short)).toEqual(["452", "1.2k", "33k", "7.2M"]);
    expect(firstLine("\n  \n  two   words \nmore")).toBe("two words");
  });
});

describe("the drawing of a swarm", () => {
  it("puts the outside on the left, then agents by their distance from the entrypoint", () => {
    const placed = layout(
      [
        { id: "people", kind: "people" },
        { id: "lead", kind: "agent", entry: true },
        { id: "logs", kind: "agent" },
        { id: "deep", kind: "agent" },
        { id: "alone", kind: "agent" },
      ],
      [
        { from: "people", to: "lead" },
        { from: "lead", to: "logs" },
        { from: "logs", to: "deep" },
      ],
    );
    expect(Object.fromEntries(placed.map(({ id, column }) => [id, column]))).toEqual({
      people: 0,
      lead: 1,
      logs: 2,
      deep: 3,
      alone: 3,
    });
  });
});
