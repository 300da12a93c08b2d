import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkSwarmName } from "./address.js";
import { MailFormatError } from "./errors.js";
import {
  checkTaskContributor,
  formatTaskContributor,
  parseTaskContributor,
  TASK_CONTRIBUTOR_ROLES,
} from "./owner.js";

describe("role:id@swarm", () => {
  it("[MAIL-OWN-03] survives a round trip with any id, also one with @ and :", () => {
    const id = fc.oneof(fc.string({ minLength: 1, unit: "grapheme" }), fc.emailAddress(), fc.webUrl());
    const swarm = fc.string({ minLength: 1 }).filter((name) => checkSwarmName(name) === undefined);
    fc.assert(
      fc.property(fc.constantFrom(...TASK_CONTRIBUTOR_ROLES), id, swarm, (role, id, swarm) => {
        expect(parseTaskContributor(formatTaskContributor({ role, id, swarm }))).toEqual({ role, id, swarm });
      }),
    );
  });

  it("takes the swarm after the last @", () => {
    expect(parseTaskContributor("user:a@x.com@desk")).toEqual({ role: "user", id: "a@x.com", swarm: "desk" });
  });

  it.each([
    ["ann@desk", /role/],
    ["agent:ann@desk", /admin, user, swarm/],
    ["USER:ann@desk", /admin, user, swarm/],
    ["user:ann", /names no swarm/],
    ["user:@desk", /empty id/],
    ["user:ann@", /empty swarm/],
    ["", /role/],
  ])("refuses %j and says why", (text, reason) => {
    expect(checkTaskContributor(text)).toMatch(reason);
    expect(() => parseTaskContributor(text)).toThrow(reason);
    expect(() => parseTaskContributor(text)).toThrow(MailFormatError);
  });
});
