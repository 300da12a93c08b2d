import { describe, expect, it } from "vitest";
import { readClaims } from "./claims.js";

const plain = { roleClaim: "role", idClaim: "sub", roles: {} };

describe("readClaims", () => {
  it("finds a claim by its name, by a path, and by a name with dots", () => {
    expect(readClaims({ role: "user", sub: "ann" }, plain)).toEqual({ role: "user", id: "ann" });
    const claims = {
      "https://example.com/role": "admin",
      realm: { access: { role: "agent" } },
      user: { id: 7 },
    };
    expect(readClaims(claims, { ...plain, roleClaim: "realm.access.role", idClaim: "user.id" })).toEqual({
      role: "agent",
      id: "7",
    });
    expect(readClaims(claims, { ...plain, roleClaim: "https://example.com/role" }).role).toBe("admin");
  });

  it("maps the issuer's role names, and uses the strongest of several roles", () => {
    const mapping = { ...plain, roleClaim: "groups", roles: { ops: "admin", staff: "user" } as const };
    expect(readClaims({ groups: ["staff", "ops", "chess club"] }, mapping).role).toBe("admin");
    expect(readClaims({ groups: "staff" }, mapping).role).toBe("user");
    expect(readClaims({ groups: ["chess club"] }, mapping).role).toBeUndefined();
    expect(readClaims({ groups: ["member", "user"] }, mapping).role).toBe("user");
  });

  it("ignores properties that every object inherits", () => {
    for (const path of [
      "constructor",
      "__proto__",
      "toString",
      "constructor.name",
      "a.length",
      "role.length",
    ]) {
      expect(readClaims({ a: "x", role: "user" }, { ...plain, idClaim: path }).id).toBeUndefined();
    }
    expect(readClaims({ role: "constructor" }, plain).role).toBeUndefined();
    expect(readClaims({ role: { user: 1 } }, plain).role).toBeUndefined();
  });
});
