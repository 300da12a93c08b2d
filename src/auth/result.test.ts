import { describe, expect, it } from "vitest";
import { devAuthenticator } from "./dev.js";
import { authenticateHeader } from "./result.js";

const dev = devAuthenticator();

describe("authenticateHeader", () => {
  it("reads a bearer token, whatever the case of the scheme", async () => {
    for (const header of ["Bearer user:ann", "bearer user:ann", "BEARER  user:ann "]) {
      expect(await authenticateHeader(dev, header)).toMatchObject({ ok: true, principal: { id: "ann" } });
    }
  });

  it("rejects every other scheme and invalid tokens", async () => {
    for (const header of [
      "Basic dXNlcjpwdw==",
      "Bearer",
      "Bearer ",
      "user:ann",
      "",
      "Bearer a b",
      "Bearer user:ü",
    ]) {
      expect(await authenticateHeader(dev, header)).toEqual({
        ok: false,
        reason: "bad_format",
        detail: "invalid API key format",
      });
    }
    expect(await authenticateHeader(dev, `Bearer user:${"a".repeat(9000)}`)).toMatchObject({
      reason: "bad_format",
    });
  });
});

describe("devAuthenticator", () => {
  it("accepts any role:id", async () => {
    expect(await dev.authenticate("admin:root")).toEqual({
      ok: true,
      principal: { role: "admin", id: "root", provider: "dev" },
    });
    expect(await dev.authenticate("user:a:b")).toMatchObject({ principal: { role: "user", id: "a:b" } });
    expect(await dev.authenticate("member:coder")).toMatchObject({
      principal: { role: "member", id: "coder" },
    });
  });

  it("treats a caller without a credential as user:dev", async () => {
    expect(await dev.authenticate(undefined)).toMatchObject({ principal: { role: "user", id: "dev" } });
  });

  it("rejects other formats, unknown roles and ids of mesh peers", async () => {
    expect(await dev.authenticate("ann")).toMatchObject({
      reason: "bad_format",
      detail: expect.stringContaining("'role:id', for example 'user:ann'"),
    });
    expect(await dev.authenticate("king:ann")).toMatchObject({ reason: "unknown", detail: "invalid role" });
    expect(await dev.authenticate("user:mesh/lab/bob")).toMatchObject({ reason: "unknown" });
    expect(await dev.authenticate("user:")).toMatchObject({ ok: false });
  });
});
