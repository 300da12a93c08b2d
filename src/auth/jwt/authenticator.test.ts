import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Problem } from "../../base/index.js";
import { type JwtOptions, jwtAuthenticator } from "./authenticator.js";
import type { JwtKey } from "./key.js";

interface Issuer {
  readonly alg: string;
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}

const START = Date.UTC(2026, 0, 1);
const SECRET = "a secret that is long enough to be one, really";
let time = START;
const clock = { now: () => time };

let es: Issuer;
let rs: Issuer;
let stranger: Issuer;
beforeAll(async () => {
  const make = async (alg: string, kid: string): Promise<Issuer> => ({
    alg,
    kid,
    ...(await generateKeyPair(alg, { extractable: true })),
  });
  es = await make("ES256", "es");
  rs = await make("RS256", "rs");
  stranger = await make("ES256", "es");
});
beforeEach(() => {
  time = START;
});

const seconds = (offset = 0) => Math.floor(START / 1000) + offset;

function sign(issuer: Issuer | string, claims: JWTPayload = {}): Promise<string> {
  const payload = { role: "user", sub: "ann", exp: seconds(60), ...claims };
  const [key, alg, kid] =
    typeof issuer === "string"
      ? [new TextEncoder().encode(issuer), "HS256", undefined]
      : [issuer.privateKey, issuer.alg, issuer.kid];
  return new SignJWT(payload).setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) }).sign(key);
}

const pem = async (issuer: Issuer): Promise<JwtKey> => ({
  kind: "public",
  text: await exportSPKI(issuer.publicKey),
});
const verifier = (key: JwtKey, options: Partial<JwtOptions> = {}) =>
  jwtAuthenticator({ key, clock, ...options });
const ann = {
  ok: true,
  principal: { role: "user", id: "ann", provider: "jwt", expiresAt: expect.any(Number) },
};

describe("a JWT", () => {
  it("is verified with a key in PEM, a JWK, a set of them, or a shared secret", async () => {
    const jwk = { ...(await exportJWK(es.publicKey)), kid: es.kid };
    const other = { ...(await exportJWK(rs.publicKey)), kid: rs.kid };
    for (const text of [
      await exportSPKI(es.publicKey),
      JSON.stringify(jwk),
      JSON.stringify({ keys: [other, jwk] }),
    ]) {
      expect(await verifier({ kind: "public", text }).authenticate(await sign(es))).toEqual(ann);
      expect(await verifier({ kind: "public", text }).authenticate(await sign(stranger))).toMatchObject({
        reason: "unknown",
      });
    }
    expect(await verifier({ kind: "secret", secret: SECRET }).authenticate(await sign(SECRET))).toEqual(ann);
  });

  it("that is forged, altered, unsigned or not a JWT is unknown", async () => {
    const good = await sign(es);
    const [header, , signature] = good.split(".");
    const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const promoted = b64({ role: "admin", sub: "ann", exp: seconds(60) });
    const check = verifier(await pem(es));
    for (const token of [
      `${header}.${promoted}.${signature}`,
      `${b64({ alg: "none" })}.${promoted}.`,
      await sign(rs),
      "nope",
      "a.b.c",
      // The public key used as a shared secret.
      await sign(await exportSPKI(es.publicKey)),
    ]) {
      expect(await check.authenticate(token)).toEqual({
        ok: false,
        reason: "unknown",
        detail: "invalid API key",
      });
    }
    expect(await check.authenticate(undefined)).toMatchObject({ reason: "missing" });
  });

  it("must have the issuer, the audience and an expiry", async () => {
    const check = verifier(await pem(es), { issuer: "https://id.example", audience: ["mailroom", "other"] });
    const right = { iss: "https://id.example", aud: "mailroom" };
    expect(await check.authenticate(await sign(es, right))).toEqual(ann);
    expect(await check.authenticate(await sign(es, { ...right, aud: ["x", "other"] }))).toEqual(ann);
    for (const wrong of [
      { ...right, iss: "https://evil.example" },
      { ...right, aud: "someone" },
      { iss: right.iss },
      { ...right, nbf: seconds(30) },
    ]) {
      expect(await check.authenticate(await sign(es, wrong))).toMatchObject({ reason: "unknown" });
    }
    const endless = await new SignJWT({ role: "user", sub: "ann", ...right })
      .setProtectedHeader({ alg: es.alg })
      .sign(es.privateKey);
    expect(await check.authenticate(endless)).toMatchObject({ reason: "unknown" });
  });

  it("expires, also while it is cached, with a tolerance for clock differences", async () => {
    const check = verifier(await pem(es), { clockTolerance: 5_000 });
    const token = await sign(es, { exp: seconds(60) });
    expect(await check.authenticate(token)).toEqual(ann);
    time = START + 64_999;
    expect(await check.authenticate(token)).toEqual(ann);
    time = START + 65_000;
    expect(await check.authenticate(token)).toEqual({
      ok: false,
      reason: "expired",
      detail: "API key has expired",
    });
  });

  it("identifies its bearer by the configured claims", async () => {
    const check = verifier(await pem(es), {
      claims: { roleClaim: "realm.roles", idClaim: "email", roles: { ops: "admin" } },
    });
    const token = await sign(es, { realm: { roles: ["ops"] }, email: "ann@example.com" });
    expect(await check.authenticate(token)).toMatchObject({
      principal: { role: "admin", id: "ann@example.com" },
    });
    expect(await check.authenticate(await sign(es, { email: "ann@example.com" }))).toMatchObject({
      detail: "invalid role",
    });
    expect(await check.authenticate(await sign(es, { realm: { roles: ["ops"] } }))).toMatchObject({
      reason: "unknown",
      detail: "invalid API key",
    });
  });

  it("cannot name a mesh peer", async () => {
    const check = verifier(await pem(es));
    expect(await check.authenticate(await sign(es, { sub: "mesh/lab/bob" }))).toMatchObject({
      reason: "unknown",
    });
  });

  it("must be signed by an algorithm on the list", async () => {
    const check = verifier(await pem(rs), { algorithms: ["PS256"] });
    expect(await check.authenticate(await sign(rs))).toMatchObject({ reason: "unknown" });
  });
});

describe("settings that cannot work", () => {
  it("are rejected at startup, without showing the key", async () => {
    const cases: [JwtKey, Partial<JwtOptions>][] = [
      [{ kind: "secret", secret: "short-secret" }, {}],
      [{ kind: "public", text: "not a key short-secret" }, {}],
      [{ kind: "public", text: '{"kty":"oct","k":"short-secret"}' }, {}],
      [{ kind: "public", text: '{"short-secret' }, {}],
      [{ kind: "secret", secret: SECRET }, { algorithms: ["RS256"] }],
      // A public key must never serve as a shared secret.
      [await pem(es), { algorithms: ["HS256"] }],
      [{ kind: "jwks", url: "https://id.example/jwks" }, { algorithms: ["ES256", "HS256"] }],
    ];
    for (const [key, options] of cases) {
      expect(() => verifier(key, options)).toThrow(expect.objectContaining({ code: "bad_auth_settings" }));
      expect(() => verifier(key, options)).not.toThrow(/short-secret/);
    }
  });
});

describe("an issuer that publishes its keys", () => {
  let server: Server;
  let url: string;
  let fetched = 0;
  let published: object;
  let handle: RequestListener;
  const problems: Problem[] = [];
  const publish: RequestListener = (_, response) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify(published));
  };

  beforeAll(async () => {
    server = createServer((request, response) => {
      fetched += 1;
      handle(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  beforeEach(async () => {
    handle = publish;
    published = {
      keys: [
        { ...(await exportJWK(es.publicKey)), kid: es.kid, alg: es.alg },
        { ...(await exportJWK(rs.publicKey)), kid: rs.kid, alg: rs.alg },
      ],
    };
  });
  afterEach(() => {
    fetched = 0;
    problems.length = 0;
  });
  const remote = (options: Partial<JwtOptions> = {}) =>
    verifier({ kind: "jwks", url }, { report: (problem) => problems.push(problem), ...options });

  it("is fetched once for any number of tokens", async () => {
    const check = remote();
    const tokens = [await sign(es), await sign(rs, { sub: "bob" }), await sign(es, { sub: "eve" })];
    const results = await Promise.all([...tokens, ...tokens].map((token) => check.authenticate(token)));
    expect(results.map((result) => result.ok && result.principal.id)).toEqual([
      ...["ann", "bob", "eve"],
      ...["ann", "bob", "eve"],
    ]);
    expect(fetched).toBe(1);
  });

  it("a token signed with an unpublished key is unknown", async () => {
    const check = remote();
    expect(await check.authenticate(await sign(stranger))).toMatchObject({ reason: "unknown" });
    expect(await check.authenticate(await sign({ ...stranger, kid: "new" }))).toMatchObject({
      reason: "unknown",
    });
    expect(problems).toEqual([]);
  });

  it("that fails makes tokens unavailable, not unknown, and is fetched again", async () => {
    const check = remote({ timeout: 200 });
    const token = await sign(es);
    for (const handler of [
      (_, response) => response.writeHead(500).end(),
      (_, response) => response.end("<html>"),
      (_, response) => response.end("{}"),
      (request) => request.socket.destroy(),
      () => {},
    ] satisfies RequestListener[]) {
      handle = handler;
      expect(await check.authenticate(token)).toMatchObject({ reason: "unavailable" });
    }
    expect(problems).toHaveLength(5);
    expect(JSON.stringify(problems)).not.toContain(token);
    handle = publish;
    expect(await check.authenticate(token)).toEqual(ann);
  });
});
