/** How an agent delivers messages and handles the responses. */
import { beforeEach, describe, expect, it } from "vitest";
import { routeUrl } from "../../src/mesh/message/endpoint.js";
import { alice, bob, carol, forEachTest, mesh, textsAt } from "./harness.js";

forEachTest();
let lab: string;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob, carol);
});

describe("delivery", () => {
  const send = async () => (await alice.agent.send({ swarmId: lab, to: "bob", content: "x" })).messageId;
  const sentAs = async (messageId: string) => (await alice.store.mesh.sentById(messageId))[0];
  const attempts = () =>
    mesh.calls.filter(({ url }) => url === "https://bob.example.com/swarm/message").length;

  it("delivery honors an absolute Retry-After", async () => {
    const at = Math.floor(mesh.clock.now() / 1_000) + 45;
    mesh.foreign.set("bob.example.com", () => ({
      status: 429,
      body: "{}",
      headers: { "retry-after": String(at) },
    }));
    mesh.calls.length = 0;
    const id = await send();
    await mesh.settle();
    mesh.foreign.clear();
    await mesh.pass(40_000);
    expect(attempts()).toBe(1);
    await mesh.pass(10_000);
    expect(attempts()).toBe(2);
    expect((await sentAs(id))?.status).toBe("delivered");
  });

  it.each([
    [
      "a 422 detail list",
      422,
      JSON.stringify({ detail: [{ loc: ["body", "signature"], msg: "Field required" }] }),
      "body.signature Field required",
    ],
    ["a string error", 400, JSON.stringify({ error: "nope" }), "nope"],
    [
      "the object form",
      403,
      JSON.stringify({ error: { code: "NOT_AUTHORIZED", message: "go away" } }),
      "go away",
    ],
    ["plain text", 410, "Gone\u001b[31m fishing", "Gone [31m fishing"],
    ["nothing", 404, "", "status 404"],
  ])("delivery reports %s and does not retry", async (_, status, body, complaint) => {
    mesh.foreign.set("bob.example.com", () => ({ status, body }));
    mesh.calls.length = 0;
    const id = await send();
    await mesh.pass(3_600_000);
    expect(attempts()).toBe(1);
    expect(await sentAs(id)).toMatchObject({ status: "failed", error: expect.stringContaining(complaint) });
  });

  it("delivery retries after a plain-text 500, a 503 or a broken connection", async () => {
    let status = 500;
    mesh.foreign.set("bob.example.com", () => ({ status, body: "Internal Server Error" }));
    mesh.calls.length = 0;
    const id = await send();
    await mesh.settle();
    expect(attempts()).toBe(1);
    status = 503;
    await mesh.pass(5_000);
    expect(attempts()).toBeGreaterThan(2);
    mesh.foreign.clear();
    mesh.down.add("bob.example.com");
    await mesh.pass(3_600_000);
    expect((await sentAs(id))?.status).toBe("sent");
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect((await sentAs(id))?.status).toBe("delivered");
    expect(await textsAt(bob)).toEqual(["x"]);
  });

  it("delivery is abandoned after 14 days and reported", async () => {
    mesh.down.add("bob.example.com");
    const lost = await send();
    await mesh.pass(13 * 86_400_000);
    expect((await sentAs(lost))?.status).toBe("sent");
    await mesh.pass(2 * 86_400_000);
    expect((await sentAs(lost))?.status).toBe("failed");
    expect(alice.problems.map(({ code }) => code)).toContain("mesh_undelivered");
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect(await textsAt(bob)).toEqual([]);
  });

  it("delivery re-signs messages, with the same id, before they are too old for the receiver", async () => {
    mesh.down.add("bob.example.com");
    const late = await send();
    await mesh.pass(30 * 3_600_000);
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect((await sentAs(late))?.status).toBe("delivered");
    expect(await bob.store.mesh.byMessageId(late)).toMatchObject({ senderId: "alice", content: "x" });
  });

  it("[ASP-ENDP-02] a delivery states content type, agent id and protocol version", async () => {
    mesh.calls.length = 0;
    await carol.agent.join(await alice.agent.invite(lab));
    await carol.agent.send({ swarmId: lab, to: "bob", content: "x" });
    await mesh.settle();
    const posts = mesh.calls.filter(({ from, method }) => from === "carol" && method === "POST");
    expect(posts.map(({ url }) => new URL(url).pathname)).toEqual(["/swarm/join", "/swarm/message"]);
    for (const { headers } of posts) {
      expect(headers).toEqual({
        "content-type": "application/json",
        "x-agent-id": "carol",
        "x-swarm-protocol": "0.1.0",
      });
    }
  });

  it("a peer with a bare origin as its endpoint is called under /swarm", () => {
    expect(routeUrl("https://a.example", "message")).toBe("https://a.example/swarm/message");
    expect(routeUrl("https://a.example/", "join")).toBe("https://a.example/swarm/join");
    expect(routeUrl("https://a.example/swarm/", "info")).toBe("https://a.example/swarm/info");
    expect(routeUrl("https://a.example/agents/x", "message")).toBe("https://a.example/agents/x/message");
  });
});
