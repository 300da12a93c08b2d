/** What is decided about a caller before a body is read, and who counts as one caller. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { LIMITS } from "../../src/mesh/message/types.js";
import { networkOf } from "../../src/mesh/wire/address.js";
import { createMeshHandler, type MeshHandler, type RequestHead } from "../../src/mesh/wire/handler.js";
import { type Agent, bodyOf, Mesh } from "./harness.js";

let mesh: Mesh;
let bob: Agent;
let handle: MeshHandler;
beforeEach(async () => {
  mesh = new Mesh();
  bob = await mesh.agent("bob");
  handle = createMeshHandler(bob.node);
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

it("the body matters only where a message or a join is posted, by who has not been refused too often", async () => {
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

it("a body that says that it is too long is refused by its word, and that counts as refused", () => {
  const said = { headers: { "content-length": String(LIMITS.bodyBytes + 1) } };
  const response = handle.early?.(head(said));
  expect(response && bodyOf(response).error?.code).toBe("TOO_LARGE");
  expect(early({ headers: { "content-length": String(LIMITS.bodyBytes) } })).toBeUndefined();
  for (let count = 1; count < 120; count += 1) expect(early(said)).toBe(413);
  expect(early({})).toBe(429);
});

it("all addresses of one IPv6 network are one caller, and IPv4 is the same wrapped in IPv6", async () => {
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
