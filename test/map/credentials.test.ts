/** Revoked and expired credentials, and failed attempts. */
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { type Authenticator, devAuthenticator, Tokens } from "../../src/auth/index.js";
import { systemClock } from "../../src/base/index.js";
import { openStore } from "../../src/store/index.js";
import { BridgeHarness, open } from "./bridge-harness.js";
import { Harness, RawClient, until } from "./harness.js";

let map: Harness;
afterEach(() => map.stop());

const bearer = (token: string) => ({ connect: { auth: { method: "bearer", token } } });

async function closing(raw: RawClient): Promise<number> {
  const [code] = await once(raw.socket, "close");
  return code;
}

describe("a connection", () => {
  it("closes when its token is revoked, and connections of other tokens stay open", async () => {
    const store = await openStore({ path: ":memory:" });
    const tokens = new Tokens({ store, clock: systemClock });
    map = await Harness.start({ store, authenticator: tokens, dev: false });
    const stolen = await tokens.create({ role: "user", id: "ann" });
    const good = await tokens.create({ role: "user", id: "ann" });
    const thief = await map.raw(bearer(stolen.token));
    const ann = await map.raw(bearer(good.token));
    const ended = closing(thief);
    await tokens.revoke(stolen.info.tokenId);
    // Requests after the revocation are ignored, even before the socket closes.
    thief.send('{"jsonrpc":"2.0","id":"late","method":"mail/create"}');
    expect(await ended).toBe(1008);
    expect(thief.frames.some(({ id }) => id === "late")).toBe(false);
    expect((await ann.call("mail/list")).conversations).toEqual([]);
    await tokens.close();
  });

  it("closes when its credential expires, unless it was refreshed in time", async () => {
    const expired = new Set<string>();
    const known = devAuthenticator();
    const authenticator: Authenticator = {
      authenticate: async (token = "") => {
        if (expired.has(token)) return { ok: false, reason: "expired", detail: "too old" };
        return known.authenticate(token.replace(/#.*/, ""));
      },
    };
    map = await Harness.start({ authenticator, limits: { pingInterval: 5 } });
    const ann = await map.raw(bearer("user:ann#1"));
    const bob = await map.raw(bearer("user:bob#1"));
    const ended = closing(ann);
    const fresh = { method: "bearer", credential: "user:bob#2" };
    expect(await bob.call("map/auth/refresh", fresh)).toMatchObject({ success: true });
    expired.add("user:ann#1").add("user:bob#1");
    expect(await ended).toBe(1008);
    expect((await bob.call("mail/list")).conversations).toEqual([]);
  });

  it("stays open while the authenticator is unavailable", async () => {
    let asked = 0;
    let away = false;
    const known = devAuthenticator();
    const authenticator: Authenticator = {
      authenticate: async (token) => {
        asked++;
        return away ? { ok: false, reason: "unavailable", detail: "away" } : known.authenticate(token);
      },
    };
    map = await Harness.start({ authenticator, limits: { pingInterval: 5 } });
    const ann = await map.raw(bearer("user:ann"));
    away = true;
    const before = asked;
    await until(() => asked > before + 3);
    expect((await ann.call("mail/list")).conversations).toEqual([]);
  });
});

it("failed credentials are counted by address over MAP and HTTP together, and do not lock out known callers", async () => {
  map = await Harness.start();
  const bridge = await BridgeHarness.start();
  try {
    const url = `${bridge.url.replace("http", "ws")}/map`;
    const ann = new RawClient(await open(url, "user:ann"));
    await ann.call("map/connect", { protocolVersion: 1 });
    const guess = async (token: string) => {
      const raw = new RawClient(await open(url, token));
      const { error } = await raw.request("map/connect", { protocolVersion: 1 });
      raw.socket.terminate();
      return error?.code;
    };
    for (let n = 0; n < 20; n++) expect(await guess(`wrong-${n}`)).toBe(1001);
    expect(await guess("wrong")).toBe(4000);
    expect(await guess("user:bob")).toBe(4000);
    expect(await guess("user:ann")).toBeUndefined();
    const response = await fetch(`${bridge.url}/tasks`, { headers: { authorization: "Bearer user:bob" } });
    expect(response.status).toBe(429);
    expect((await ann.call("mail/list")).conversations).toEqual([]);
    ann.socket.terminate();
  } finally {
    await bridge.stop();
  }
});
