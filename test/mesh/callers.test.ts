/** Checks before a body is read, and which addresses count as one caller. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { networkOf } from "../../src/doors/mesh/client-address.js";
import { createMeshHandler, type MeshHandler, type RequestHead } from "../../src/doors/mesh/handler.js";
import { LIMITS } from "../../src/mesh/message/types.js";
import { type Agent, bodyOf, Mesh } from "./harness.js";

let mesh: Mesh;
let bob: Agent;
let handle: MeshHandler;
beforeEach(async () => {
  mesh = new Mesh();
  bob = await mesh.agent("bob");
  handle = createMeshHandler(bob.agent);
});
afterEach(() => mesh.close());

const head = (given: Partial<RequestHead>): RequestHead => ({
  method: "POST",
  path: "/swarm/message",
  headers: {},
  address: "192.0.2.1",
  ...given,
});
const early = (given: Partial<RequestHead>) => handle.early?.(head(given))?.status;

it("the body is read only for a posted message or join of a caller that was not refused too often", async () => {
  expect(early({ path: "/swarm/nothing" })).toBe(404);
  expect(early({ path: "/constructor" })).toBe(404);
  expect(early({ method: "PUT" })).toBe(405);
  expect(early({ method: "GET", path: "/swarm/health" })).toBe(200);
  expect(early({})).toBeUndefined();
  expect(early({ path: "/swarm/join/" })).toBeUndefined();
  for (let count = 0; count < 120; count += 1) {
    await handle({ ...head({}), body: Buffer.from("{") });
  }
  expect(early({})).toBe(429);
  expect(early({ address: "192.0.2.2" })).toBeUndefined();
});

it("a body with a too large content-length is refused unread and counts as a refused request", () => {
  const said = { headers: { "content-length": String(LIMITS.bodyBytes + 1) } };
  const response = handle.early?.(head(said));
  expect(response && bodyOf(response).error?.code).toBe("TOO_LARGE");
  expect(early({ headers: { "content-length": String(LIMITS.bodyBytes) } })).toBeUndefined();
  for (let count = 1; count < 120; count += 1) expect(early(said)).toBe(413);
  expect(early({})).toBe(429);
});

it("the addresses of one IPv6 /64 are one caller, and IPv4-mapped addresses count as IPv4", async () => {
  const join = async (address: string) => (await bob.post("/swarm/join", {}, {}, address)).status;
  for (let count = 0; count < 10; count += 1) expect(await join(`2001:db8::${count}`)).toBe(400);
  expect(await join("2001:db8::ffff:1:2:3")).toBe(429);
  expect(await join("2001:db8:0:1::1")).toBe(400);
  for (let count = 0; count < 9; count += 1) await join("203.0.113.9");
  expect(await join("::ffff:203.0.113.9")).toBe(400);
  expect(await join("203.0.113.9")).toBe(429);
});

it.each([
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["192.0.2.1", "192.0.2.1"],
  ["unknown", "unknown"],
])("%s counts as %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it("[MAP-F-7] a body that is nested more deeply than at the other doors is refused with the limit", async () => {
  const nested = (levels: number) => Buffer.from(`${"[".repeat(levels)}${"]".repeat(levels)}`);
  const refusal = await handle({ ...head({}), body: nested(65) });
  expect(refusal.status).toBe(400);
  expect(refusal.body).toContain("nested more than 64 levels deep");
  expect((await handle({ ...head({}), body: nested(64) })).body).not.toContain("nested");
});
