import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { MAILInterswarmMessage, MAILMessage } from "./message.js";
import { mailCoreSchema, mailInterswarmSchema } from "./schema.js";
import { checkInterswarmMessage, checkMailMessage, mailAjv } from "./validate.js";

const SCHEMAS = new URL("../../schemas/", import.meta.url);

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, SCHEMAS), "utf8"));
}

const published = {
  core: readJson("MAIL-core.schema.json"),
  interswarm: readJson("MAIL-interswarm.schema.json"),
};

describe("the published schemas", () => {
  it("are current (otherwise run npx tsx scripts/schemas.ts)", () => {
    expect(published.core).toEqual(mailCoreSchema());
    expect(published.interswarm).toEqual(mailInterswarmSchema());
  });

  it("document that a task id need not be a UUID", () => {
    expect(published.core).toMatchObject({
      $defs: { MAILRequest: { properties: { task_id: { description: expect.stringContaining("exempt") } } } },
    });
  });

  it("[MAIL-DATA-01] define every type", () => {
    const payloads = ["MAILAddress", "MAILBroadcast", "MAILInterrupt", "MAILRequest", "MAILResponse"];
    for (const name of [...payloads, "MAILMessage"]) {
      expect(published.core).toHaveProperty(["$defs", name, "additionalProperties"], false);
    }
    for (const name of [...payloads, "MAILInterswarmMessage"]) {
      expect(published.interswarm).toHaveProperty(["$defs", name, "additionalProperties"], false);
    }
  });
});

const kinds = {
  core: { published: compile(published.core), check: checkMailMessage, zod: MAILMessage },
  interswarm: {
    published: compile(published.interswarm),
    check: checkInterswarmMessage,
    zod: MAILInterswarmMessage,
  },
};

function compile(schema: unknown) {
  if (typeof schema !== "object" || schema === null) throw new TypeError("a schema file contains an object");
  return mailAjv().compile(schema);
}

/** The first part of a file name is the schema of the example. */
function kindOf(file: string) {
  return file.startsWith("core-") ? kinds.core : kinds.interswarm;
}

const goodFiles = readdirSync(new URL("examples/good/", SCHEMAS));
const badFiles = readdirSync(new URL("examples/bad/", SCHEMAS)).filter((file) => file !== "index.json");
const wrongAt = new Map(Object.entries(Object(readJson("examples/bad/index.json"))));

describe("the examples", () => {
  it.each(goodFiles)("good/%s is valid for the published schema, our validator and zod", (file) => {
    const example = readJson(`examples/good/${file}`);
    const kind = kindOf(file);
    expect(kind.published(example)).toBe(true);
    expect(kind.check(example)).toEqual({ ok: true, value: example });
    expect(kind.zod.safeParse(example).success).toBe(true);
  });

  it.each(badFiles)("bad/%s is rejected by all three, at the path in the index", (file) => {
    const example = readJson(`examples/bad/${file}`);
    const kind = kindOf(file);
    expect(kind.published(example)).toBe(false);
    expect(kind.zod.safeParse(example).success).toBe(false);
    const checked = kind.check(example);
    if (checked.ok) throw new Error(`${file} was accepted`);
    expect(wrongAt.has(file)).toBe(true);
    expect(checked.errors.map(({ path }) => path)).toContain(wrongAt.get(file));
  });

  it("[MAIL-CONF-02, MAIL-DATA-02, MAIL-DATA-03, MAIL-DATA-04, MAIL-DATA-05, MAIL-DATA-06, MAIL-DATA-07] cover every message type of both schemas", () => {
    const covered = (prefix: string) =>
      new Set(
        goodFiles
          .filter((file) => file.startsWith(prefix))
          .map((file) => Object(readJson(`examples/good/${file}`)).msg_type),
      );
    expect(covered("core-").size).toBe(5);
    expect(covered("interswarm-").size).toBe(4);
    expect([...wrongAt.keys()].sort()).toEqual([...badFiles].sort());
  });
});
