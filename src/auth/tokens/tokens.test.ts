import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Problem } from "../../base/index.js";
import { type FullStore, openStore } from "../../store/index.js";
import type { TokenRow, TokenStore } from "../ports.js";
import { makeToken } from "./token.js";
import { Tokens, type TokensOptions } from "./tokens.js";

let store: FullStore;
let time = 1_000_000;
const clock = { now: () => time };

/** The store, with a count of its queries and a gate that delays their results. */
function watched(gate: () => Promise<void> = async () => {}): TokenStore & { finds: number } {
  const counted = {
    finds: 0,
    tokens: {
      list: (options: { limit: number; cursor?: number }) => store.tokens.list(options),
      async find(tokenId: string): Promise<TokenRow | undefined> {
        counted.finds += 1;
        const row = await store.tokens.find(tokenId);
        await gate();
        return row;
      },
    },
    commit: (batch: Parameters<TokenStore["commit"]>[0]) => store.commit(batch),
  };
  return counted;
}

const open = (options: Partial<TokensOptions> = {}) => new Tokens({ store, clock, ...options });

beforeEach(async () => {
  time = 1_000_000;
  store = await openStore({ path: ":memory:" });
});
afterEach(() => store.close());

describe("a token that was created", () => {
  it("identifies its bearer", async () => {
    const tokens = open();
    const { token, info } = await tokens.create({ role: "user", id: "ann", label: "laptop" });
    expect(await tokens.authenticate(token)).toEqual({
      ok: true,
      principal: { role: "user", id: "ann", provider: "token", tokenId: info.tokenId },
    });
    expect(info).toEqual({
      tokenId: info.tokenId,
      role: "user",
      id: "ann",
      label: "laptop",
      createdAt: 1_000_000,
    });
  });

  it("is rejected with another secret, also when it is cached", async () => {
    const tokens = open();
    const { token } = await tokens.create({ role: "user", id: "ann" });
    const forged = `${token.slice(0, -1)}${token.endsWith("a") ? "b" : "a"}`;
    const refused = { ok: false, reason: "unknown", detail: "invalid API key" };
    expect(await tokens.authenticate(forged)).toEqual(refused);
    expect(await tokens.authenticate(token)).toMatchObject({ ok: true });
    expect(await tokens.authenticate(forged)).toEqual(refused);
    // The hash covers the role in the text: a caller cannot promote itself.
    expect(await tokens.authenticate(token.replace("mr_user_", "mr_admin_"))).toEqual(refused);
  });

  it("is accepted by another process", async () => {
    const { token } = await open().create({ role: "agent", id: "beta" });
    expect(await open().authenticate(token)).toMatchObject({ principal: { role: "agent", id: "beta" } });
  });

  it("costs no query while it is cached, and one after that", async () => {
    const counted = watched();
    const tokens = open({ store: counted, cacheTime: 1000 });
    const { token } = await tokens.create({ role: "user", id: "ann" });
    for (let n = 0; n < 50; n++) await tokens.authenticate(token);
    expect(counted.finds).toBe(1);
    time += 1000;
    await tokens.authenticate(token);
    expect(counted.finds).toBe(2);
  });

  it("is cached among a bounded number", async () => {
    const counted = watched();
    const tokens = open({ store: counted, cacheSize: 2 });
    const made = [];
    for (const id of ["a", "b", "c"]) made.push((await tokens.create({ role: "user", id })).token);
    for (const token of made) await tokens.authenticate(token);
    for (const token of made) expect(await tokens.authenticate(token)).toMatchObject({ ok: true });
    expect(counted.finds).toBe(6);
  });
});

describe("refusals", () => {
  it("use the messages of the reference", async () => {
    const tokens = open();
    expect(await tokens.authenticate(undefined)).toEqual({
      ok: false,
      reason: "missing",
      detail: "no API key provided",
    });
    for (const text of ["nope", "mr_user_short", makeToken("user").token]) {
      expect(await tokens.authenticate(text)).toEqual({
        ok: false,
        reason: "unknown",
        detail: "invalid API key",
      });
    }
    expect(await tokens.authenticate("a\tb")).toMatchObject({ reason: "bad_format" });
  });

  it("are unavailable when the store fails, and do not name the token", async () => {
    const problems: Problem[] = [];
    const tokens = open({ report: (problem) => problems.push(problem) });
    const { token } = await tokens.create({ role: "user", id: "ann" });
    await store.close();
    expect(await tokens.authenticate(token)).toMatchObject({ ok: false, reason: "unavailable" });
    expect(problems).toHaveLength(1);
    expect(JSON.stringify(problems)).not.toContain(token);
  });
});

describe("revocation", () => {
  it("takes effect at once, also for a cached token", async () => {
    const tokens = open();
    const { token, info } = await tokens.create({ role: "user", id: "ann" });
    expect(await tokens.authenticate(token)).toMatchObject({ ok: true });
    time += 5;
    await tokens.revoke(info.tokenId);
    expect(await tokens.authenticate(token)).toMatchObject({ reason: "unknown" });
    expect((await tokens.list()).tokens).toMatchObject([{ revokedAt: 1_000_005 }]);
  });

  it("is not undone by a concurrent query", async () => {
    let letThrough = (): void => {};
    const gate = new Promise<void>((resolve) => {
      letThrough = resolve;
    });
    const tokens = open({ store: watched(() => gate) });
    const { token, info } = await tokens.create({ role: "user", id: "ann" });
    const asked = tokens.authenticate(token);
    await tokens.revoke(info.tokenId);
    letThrough();
    expect(await asked).toMatchObject({ reason: "unknown" });
    expect(await tokens.authenticate(token)).toMatchObject({ reason: "unknown" });
  });

  it("by another process takes effect with the next lookup", async () => {
    const [here, there] = [open({ cacheTime: 1000 }), open()];
    const { token, info } = await here.create({ role: "user", id: "ann" });
    await here.authenticate(token);
    await there.revoke(info.tokenId);
    time += 1000;
    expect(await here.authenticate(token)).toMatchObject({ reason: "unknown" });
  });

  it("accepts a whole token, can be repeated, and rejects an unknown one", async () => {
    const tokens = open();
    const { token } = await tokens.create({ role: "user", id: "ann" });
    await tokens.revoke(token);
    time += 9;
    await tokens.revoke(token);
    expect((await tokens.list()).tokens).toMatchObject([{ revokedAt: 1_000_000 }]);
    const stranger = makeToken("user").token;
    await expect(tokens.revoke(stranger)).rejects.toMatchObject({ code: "unknown_token" });
    await expect(tokens.revoke(stranger)).rejects.not.toThrow(stranger);
  });
});

describe("ensureAdminToken", () => {
  it("creates one admin token at the first start, and none later", async () => {
    const first = await open().ensureAdminToken();
    expect(first?.info).toMatchObject({ role: "admin", id: "root" });
    expect(await open().authenticate(first?.token)).toMatchObject({ principal: { role: "admin" } });
    expect(await open().ensureAdminToken()).toBeUndefined();
    await open().revoke(first?.info.tokenId ?? "");
    expect(await open().ensureAdminToken()).toBeUndefined();
    expect((await open().list()).tokens).toHaveLength(1);
  });

  it("creates one under concurrent calls, and beside tokens of other roles", async () => {
    await open().create({ role: "user", id: "ann" });
    const made = await Promise.all(Array.from({ length: 10 }, () => open().ensureAdminToken()));
    expect(made.filter((token) => token !== undefined)).toHaveLength(1);
  });
});

describe("administration", () => {
  it("rejects invalid ids and labels", async () => {
    const tokens = open();
    for (const request of [
      { role: "user", id: "mesh/lab/bob" },
      { role: "user", id: "" },
      { role: "agent", id: "a@b" },
      { role: "user", id: "ann", label: "a\nb" },
      { role: "user", id: "ann", label: "x".repeat(201) },
    ] as const) {
      await expect(tokens.create(request)).rejects.toMatchObject({ code: "bad_token_request" });
    }
    expect((await tokens.list()).tokens).toEqual([]);
  });

  it("lists tokens in pages, without their secrets", async () => {
    const tokens = open();
    for (const id of ["a", "b", "c"]) await tokens.create({ role: "user", id });
    const first = await tokens.list({ limit: 2 });
    expect(first.tokens.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(Object.keys(first.tokens[0] ?? {})).not.toContain("hash");
    const rest = await tokens.list({ limit: 2, cursor: first.nextCursor ?? 0 });
    expect(rest.tokens.map(({ id }) => id)).toEqual(["c"]);
    expect(rest.nextCursor).toBeUndefined();
  });

  it("records when a token was last used, but not every use", async () => {
    const tokens = open({ usedInterval: 1000 });
    const { token } = await tokens.create({ role: "user", id: "ann" });
    const lastUsed = async () => {
      await tokens.close();
      return (await tokens.list()).tokens[0]?.lastUsedAt;
    };
    expect(await lastUsed()).toBeUndefined();
    await tokens.authenticate(token);
    expect(await lastUsed()).toBe(1_000_000);
    time += 999;
    await tokens.authenticate(token);
    expect(await lastUsed()).toBe(1_000_000);
    time += 1;
    await tokens.authenticate(token);
    expect(await lastUsed()).toBe(1_001_000);
  });
});

describe("the files of the store", () => {
  it("contain no token (decision C7)", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-tokens-"));
    try {
      const onDisk = await openStore({ directory });
      const tokens = new Tokens({ store: onDisk, clock });
      const { token, info } = await tokens.create({ role: "user", id: "ann" });
      await tokens.authenticate(token);
      await tokens.close();
      const bytes = Buffer.concat(readdirSync(directory).map((name) => readFileSync(join(directory, name))));
      expect(bytes.includes(info.tokenId)).toBe(true);
      expect(bytes.includes(token.slice(-32))).toBe(false);
      await onDisk.close();
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
