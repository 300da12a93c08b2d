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
  normaliseAddress,
  parseAgentAddress,
} from "./address.js";

describe("creating addresses", () => {
  it("[MAIL-ADDR-01] gives each kind its type", () => {
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

  it("reads back whatever valid names were put together", () => {
    fc.assert(
      fc.property(validName(), fc.option(validName(), { nil: undefined }), (name, swarm) => {
        const parsed = parseAgentAddress(formatAgentAddress(name, swarm));
        expect(parsed).toEqual(swarm === undefined ? { name } : { name, swarm });
      }),
    );
  });
});

describe("local and remote", () => {
  it("leaves out a qualifier that names the local swarm, and no other", () => {
    expect(normaliseAddress("librarian@books", "books")).toBe("librarian");
    expect(normaliseAddress("librarian", "books")).toBe("librarian");
    expect(normaliseAddress("librarian@weather", "books")).toBe("librarian@weather");
  });

  it("gives both spellings of a local agent the same form, and keeps it", () => {
    fc.assert(
      fc.property(validName(), validName(), validName(), (name, swarm, local) => {
        expect(normaliseAddress(`${name}@${local}`, local)).toBe(normaliseAddress(name, local));
        const once = normaliseAddress(`${name}@${swarm}`, local);
        expect(normaliseAddress(once, local)).toBe(once);
      }),
    );
  });

  it("knows which mail leaves the swarm", () => {
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
  ])("refuses %j and says why", (name, reason) => {
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
