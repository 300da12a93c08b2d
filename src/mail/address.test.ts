import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  checkAgentName,
  checkSwarmName,
  createAdminAddress,
  createAgentAddress,
  createSystemAddress,
  createUserAddress,
  formatAgentAddress,
  isInterswarmAddress,
  normalizeAddress,
  parseAgentAddress,
} from "./address.js";

describe("creating addresses", () => {
  it("[MAIL-ADDR-01] each kind of address has its type", () => {
    expect(createAgentAddress("librarian@books")).toEqual({
      address_type: "agent",
      address: "librarian@books",
    });
    expect(createUserAddress("u-17")).toEqual({ address_type: "user", address: "u-17" });
    expect(createAdminAddress("root")).toEqual({ address_type: "admin", address: "root" });
    expect(createSystemAddress("books")).toEqual({ address_type: "system", address: "books" });
  });
});

describe("parsing agent addresses", () => {
  it.each([
    ["librarian", { name: "librarian" }],
    ["librarian@books", { name: "librarian", swarm: "books" }],
    ["a@b@c", { name: "a", swarm: "b@c" }],
    [" librarian @ books ", { name: "librarian", swarm: "books" }],
    ["librarian@", { name: "librarian", swarm: "" }],
  ])("reads %j", (text, parsed) => {
    expect(parseAgentAddress(text)).toEqual(parsed);
  });

  it("parsing restores all valid names that were formatted", () => {
    fc.assert(
      fc.property(validName(), fc.option(validName(), { nil: undefined }), (name, swarm) => {
        const parsed = parseAgentAddress(formatAgentAddress(name, swarm));
        expect(parsed).toEqual(swarm === undefined ? { name } : { name, swarm });
      }),
    );
  });
});

describe("local and remote", () => {
  it("removes only a qualifier that names the local swarm", () => {
    expect(normalizeAddress("librarian@books", "books")).toBe("librarian");
    expect(normalizeAddress("librarian", "books")).toBe("librarian");
    expect(normalizeAddress("librarian@weather", "books")).toBe("librarian@weather");
  });

  it("gives both spellings of a local agent the same stable form", () => {
    fc.assert(
      fc.property(validName(), validName(), validName(), (name, swarm, local) => {
        expect(normalizeAddress(`${name}@${local}`, local)).toBe(normalizeAddress(name, local));
        const once = normalizeAddress(`${name}@${swarm}`, local);
        expect(normalizeAddress(once, local)).toBe(once);
      }),
    );
  });

  it("recognizes mail that leaves the swarm", () => {
    expect(isInterswarmAddress("librarian", "books")).toBe(false);
    expect(isInterswarmAddress("librarian@books", "books")).toBe(false);
    expect(isInterswarmAddress("forecaster@weather", "books")).toBe(true);
  });
});

describe("names", () => {
  it.each([
    ["", /empty/],
    ["all", /reserved/],
    ["a@b", /"@"/],
    ["a:b", /":"/],
    ["two words", /white space/],
    ["line\nbreak", /white space/],
    ["bell\u0007", /control/],
    ["next\u0085line", /control|white/],
  ])("rejects %j with a reason", (name, reason) => {
    expect(checkAgentName(name)).toMatch(reason);
    expect(checkSwarmName(name)).toMatch(reason);
  });

  it.each(["supervisor", "All", "größe", "a-b_c.d", "研究"])("takes %j", (name) => {
    expect(checkAgentName(name)).toBeUndefined();
    expect(checkSwarmName(name)).toBeUndefined();
  });
});

function validName() {
  return fc.string({ minLength: 1, unit: "grapheme" }).filter((name) => checkAgentName(name) === undefined);
}
