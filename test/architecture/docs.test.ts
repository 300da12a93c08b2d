/** The generated pages are current, and everything public is documented. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { apiDocs, ENTRY_POINTS, type PublicName, publicNames } from "../../scripts/api-docs.js";
import { SRC } from "../../scripts/declarations.js";
import { eventsDocs } from "../../scripts/events-docs.js";

const DOCS = join(import.meta.dirname, "../../docs");

describe("generated pages (if they differ: npm run docs)", () => {
  it("docs/events.md is current", () => {
    expect(readFileSync(join(DOCS, "events.md"), "utf8")).toBe(eventsDocs());
  });

  it("docs/api is current", () => {
    const pages = apiDocs();
    expect(readdirSync(join(DOCS, "api")).sort()).toEqual([...pages.keys()].sort());
    for (const [name, text] of pages) expect(readFileSync(join(DOCS, "api", name), "utf8")).toBe(text);
  });
});

/** Each is shown by the example of `defineSettings`. */
const SETTING_KINDS = /^(?:boolean|bytes|choice|duration|httpUrl|integer|list|path|table|text)$/;

/** The names of the protocol are explained by its specification. */
const ENTRIES_WITH_EXAMPLES = ENTRY_POINTS.filter(({ name }) => !name.endsWith("/mail"));

describe("public names", () => {
  const where = ({ name, declarations }: PublicName) =>
    `${relative(SRC, declarations[0]?.file.path ?? "")} ${name}`;

  it("are all found and have a doc comment", () => {
    const bare = ENTRY_POINTS.flatMap(publicNames).filter(
      ({ declarations }) => !declarations.some(({ doc }) => (doc?.text.length ?? 0) > 10),
    );
    expect(bare.map(where)).toEqual([]);
  });

  it("that are functions or classes have an example", () => {
    const without = ENTRIES_WITH_EXAMPLES.flatMap(publicNames).filter(
      ({ name, declarations }) =>
        declarations.some(({ node }) => /^(?:Function|Class)/.test(node.type)) &&
        !declarations.some(({ doc }) => doc?.tags.some((tag) => tag.name === "example")) &&
        !name.endsWith("Error") &&
        !SETTING_KINDS.test(name),
    );
    expect(without.map(where)).toEqual([]);
  });

  it("explain every optional field of options", () => {
    const silent = ENTRY_POINTS.flatMap(publicNames).flatMap(({ name, declarations }) =>
      declarations.flatMap(({ file, node }) => {
        if (node.type !== "TSInterfaceDeclaration" || !name.endsWith("Options")) return [];
        return node.body.body.flatMap((member) =>
          member.type === "TSPropertySignature" && member.optional && file.docOf(member) === undefined
            ? [`${relative(SRC, file.path)} ${name}.${file.slice(member.key)}`]
            : [],
        );
      }),
    );
    expect(silent).toEqual([]);
  });
});
