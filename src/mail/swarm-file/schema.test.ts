import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { swarmFileJsonSchema } from "./schema.js";

const published: unknown = JSON.parse(
  readFileSync(new URL("../../../schemas/swarms.schema.json", import.meta.url), "utf8"),
);

const swarm = {
  name: "solo",
  version: "1.0.0",
  entrypoint: "me",
  agents: [
    {
      name: "me",
      factory: "mail:agent",
      comm_targets: [],
      enable_entrypoint: true,
      can_complete_tasks: true,
    },
  ],
};

describe("the published schema", () => {
  it("is current (otherwise run npx tsx scripts/schemas.ts)", () => {
    expect(published).toEqual(swarmFileJsonSchema());
  });

  it("accepts swarm files and rejects unknown keys", () => {
    const accepts = new Ajv2020({ allErrors: true }).compile(swarmFileJsonSchema());
    expect(accepts([swarm])).toBe(true);
    expect(accepts({ $schema: "./swarms.schema.json", swarms: [swarm] })).toBe(true);
    expect(accepts([{ ...swarm, entry: "me" }])).toBe(false);
    expect(accepts([{ ...swarm, agents: [{ name: "me" }] }])).toBe(false);
  });

  it("describes every key of a swarm, an agent and an action", () => {
    const { $defs } = Object(swarmFileJsonSchema());
    for (const part of ["swarm", "agent", "action"]) {
      for (const [key, schema] of Object.entries(Object($defs)[part].properties)) {
        if (key === "agents" || key === "actions") continue;
        expect(Object(schema).description, `${part}.${key}`).toBeTypeOf("string");
      }
    }
  });
});
