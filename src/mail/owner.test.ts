import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkSwarmName } from "./address.js";
import {
  checkTaskContributor,
  formatTaskContributor,
  parseTaskContributor,
  TASK_CONTRIBUTOR_ROLES,
} from "./owner.js";

describe("role:id@swarm", () => {
  it("[MAIL-OWN-03] is restored by parsing for any id, also one with @ and :", () => {
    const id = fc.oneof(fc.string({ minLength: 1, unit: "grapheme" }), fc.emailAddress(), fc.webUrl());
    const swarm = fc.string({ minLength: 1 }).filter((name) => checkSwarmName(name) === undefined);
    fc.assert(
      fc.property(fc.constantFrom(...TASK_CONTRIBUTOR_ROLES), id, swarm, (role, id, swarm) => {
        expect(parseTaskContributor(formatTaskContributor({ role, id, swarm }))).toEqual({ role, id, swarm });
      }),
    );
  });

  it("the swarm begins after the last @", () => {
    expect(parseTaskContributor("user:a@x.com@desk")).toEqual({ role: "user", id: "a@x.com", swarm: "desk" });
  });

  it.each([
    ["ann@desk", /role/],
    ["agent:ann@desk", /admin, user, swarm/],
    ["USER:ann@desk", /admin, user, swarm/],
    ["user:ann", /has no swarm/],
    ["user:@desk", /empty id/],
    ["user:ann@", /empty swarm/],
    ["", /role/],
  ])("rejects %j with a reason", (text, reason) => {
    expect(checkTaskContributor(text)).toMatch(reason);
    expect(() => parseTaskContributor(text)).toThrow(reason);
    expect(() => parseTaskContributor(text)).toThrow("not a valid");
  });
});
