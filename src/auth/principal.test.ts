import { describe, expect, it } from "vitest";
import { checkPrincipalId, instanceOf } from "./principal.js";
import { ROLES } from "./roles.js";

describe("instanceOf", () => {
  it("assigns every caller the instance that owns its tasks, and a member none", () => {
    expect(instanceOf({ role: "user", id: "ann" })).toEqual({ role: "user", id: "ann" });
    expect(instanceOf({ role: "admin", id: "root" })).toEqual({ role: "admin", id: "root" });
    expect(instanceOf({ role: "agent", id: "beta" })).toEqual({ role: "swarm", id: "beta" });
    expect(instanceOf({ role: "member", id: "coder" })).toBeUndefined();
  });
});

describe("checkPrincipalId", () => {
  it("accepts names of people, including e-mail addresses", () => {
    for (const id of ["ann", "ann@example.com", "42", "Ann Smith", "größe", "x/mesh/y"]) {
      expect(checkPrincipalId("user", id)).toBeUndefined();
    }
  });

  it("rejects ids that look like a mesh peer, in every role", () => {
    for (const role of ROLES) expect(checkPrincipalId(role, "mesh/lab/bob")).toMatch(/mesh/);
  });

  it.each([
    ["", /empty/],
    [" ann", /white space/],
    ["ann ", /white space/],
    ["a\nb", /control characters/],
    ["a\u0000b", /control characters/],
    ["x".repeat(257), /at most 256/],
  ])("rejects the unprintable or ambiguous id %j", (id, reason) => {
    expect(checkPrincipalId("user", id)).toMatch(reason);
  });

  it("applies the name rules of swarms and agents", () => {
    expect(checkPrincipalId("agent", "beta@gamma")).toMatch(/swarm name/);
    expect(checkPrincipalId("member", "all")).toMatch(/reserved/);
    expect(checkPrincipalId("agent", "beta")).toBeUndefined();
    expect(checkPrincipalId("member", "coder")).toBeUndefined();
  });
});
