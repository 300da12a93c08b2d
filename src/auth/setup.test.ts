import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportSPKI, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FullStore, openStore } from "../store/index.js";
import type { AuthSettings } from "./settings.js";
import { createAuthenticator } from "./setup.js";
import { Tokens } from "./tokens/tokens.js";

const clock = { now: () => Date.now() };
const settings: AuthSettings & { dev: boolean } = {
  dev: false,
  mode: ["token"],
  authEndpoint: undefined,
  tokenInfoEndpoint: undefined,
  timeout: 1000,
  cacheSize: 10,
  cacheTime: 1000,
  refusalCacheTime: 10,
  adminsActForOwners: false,
  jwt: {
    jwksUrl: undefined,
    key: undefined,
    keyFile: undefined,
    secret: undefined,
    issuer: undefined,
    audience: [],
    algorithms: [],
    roleClaim: "role",
    idClaim: "sub",
    roles: {},
    clockTolerance: 5000,
  },
};

describe("createAuthenticator", () => {
  let store: FullStore;
  let tokens: Tokens;
  beforeAll(async () => {
    store = await openStore({ path: ":memory:" });
    tokens = new Tokens({ store, clock });
  });
  afterAll(() => store.close());

  it("accepts Mailroom's own tokens and those of an identity provider", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-auth-"));
    try {
      const { privateKey, publicKey } = await generateKeyPair("ES256");
      const keyFile = join(directory, "issuer.pem");
      writeFileSync(keyFile, await exportSPKI(publicKey));
      const jwt = { ...settings.jwt, keyFile };
      const both = await createAuthenticator({ ...settings, mode: ["token", "jwt"], jwt }, { tokens, clock });
      const { token } = await tokens.create({ role: "admin", id: "root" });
      const signed = await new SignJWT({ role: "user", sub: "ann" })
        .setProtectedHeader({ alg: "ES256" })
        .setExpirationTime("1m")
        .sign(privateKey);
      expect(await both.authenticate(token)).toMatchObject({ principal: { provider: "token", id: "root" } });
      expect(await both.authenticate(signed)).toMatchObject({ principal: { provider: "jwt", id: "ann" } });
      expect(await both.authenticate("user:ann")).toMatchObject({ reason: "unknown" });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it("accepts any role:id in development only", async () => {
    const dev = await createAuthenticator({ ...settings, dev: true }, { tokens, clock });
    expect(await dev.authenticate("user:ann")).toMatchObject({ ok: true });
    const real = await createAuthenticator(settings, { tokens, clock });
    expect(await real.authenticate("user:ann")).toMatchObject({ ok: false });
    expect(await real.authenticate(undefined)).toMatchObject({ reason: "missing" });
  });

  it("rejects incomplete settings", async () => {
    const { jwt } = settings;
    for (const wrong of [
      { mode: [] },
      { mode: ["service"] },
      { mode: ["jwt"] },
      { mode: ["jwt"], jwt: { ...jwt, secret: "x".repeat(32), jwksUrl: "https://id.example/jwks" } },
      { mode: ["jwt"], jwt: { ...jwt, keyFile: "/no/such/file" } },
    ] as const) {
      await expect(createAuthenticator({ ...settings, ...wrong }, { tokens, clock })).rejects.toMatchObject({
        code: "bad_auth_settings",
      });
    }
  });
});
