/** When streams end: with the round of their own message, and with their token. */
import { expect, it } from "vitest";
import type { Authenticator, AuthResult } from "../../src/auth/index.js";
import { gate, parseStream, startServer } from "./harness.js";
import { captureSwarm } from "./swarm.js";

it("a message stream that is resumed ends with the round of its own message, not with another one", async () => {
  const held = gate();
  const harness = await startServer({ room: { swarm: captureSwarm({ hold: () => held.opened }) } });
  try {
    const { call, url } = harness;
    const token = "user-token";
    await call("/message", { token, json: { body: "[direct] [think] first", task_id: "t", wait: false } });
    const cut = new AbortController();
    const { headers } = await fetch(`${url}/message`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ body: "[direct] second", task_id: "t", stream: true }),
      signal: cut.signal,
    });
    cut.abort();
    const location = headers.get("location") ?? "";
    expect(location).toMatch(/\?round=\d+$/);
    const resumed = call(location, { token, headers: { accept: "text/event-stream" } });
    held.open();
    const events = parseStream((await resumed).text);
    const ended = events.filter(({ event }) => event === "task_complete");
    expect(ended).toHaveLength(2);
    expect(events.at(-1)?.event).toBe("task_complete");
    // Also when the round is over, and from any event on.
    const late = await call(location, {
      token,
      headers: { accept: "text/event-stream", "last-event-id": String(ended[0]?.id) },
    });
    expect(parseStream(late.text).filter(({ event }) => event === "task_complete")).toHaveLength(1);
  } finally {
    await harness.close();
  }
});

it.each([
  ["rejects its credential", { ok: false, reason: "unknown", detail: "unknown key" }],
  [
    "gives its credential to another caller",
    { ok: true, principal: { role: "user", id: "bob", provider: "service" } },
  ],
] as const)(
  "a stream ends when an external service %s, but not while the service is unavailable",
  async (_how, last) => {
    const before: AuthResult = { ok: true, principal: { role: "user", id: "ann", provider: "service" } };
    const later: AuthResult[] = [
      { ok: false, reason: "unavailable", detail: "the service did not answer" },
      before,
      { ok: false, reason: "unavailable", detail: "the service did not answer" },
    ];
    let open = false;
    const authenticator: Authenticator = {
      authenticate: async () => (open ? (later.shift() ?? last) : before),
    };
    const harness = await startServer({ authenticator, limits: { credentialReview: 5 } });
    try {
      const { url, call } = harness;
      await call("/message", { token: "key", json: { body: "[direct] x", task_id: "t" } });
      // Without an end of its own, only the credential can end it.
      const response = await fetch(`${url}/tasks/t/events`, {
        headers: { authorization: "Bearer key", accept: "text/event-stream" },
      });
      expect(response.status).toBe(200);
      open = true;
      expect(await response.text()).toContain("task_complete");
      expect(later).toEqual([]);
    } finally {
      await harness.close();
    }
  },
);

it("a stream ends when its token expires", async () => {
  const authenticator: Authenticator = {
    authenticate: async (bearer) => ({
      ok: true,
      principal: {
        role: "user",
        id: "ann",
        provider: "jwt",
        ...(bearer === "short" && { expiresAt: Date.now() + 100 }),
      },
    }),
  };
  const harness = await startServer({ authenticator });
  try {
    await harness.call("/message", { token: "long", json: { body: "[direct] x", task_id: "t" } });
    // Without an end of its own, only the token can end it.
    const { status, text } = await harness.call("/tasks/t/events", {
      token: "short",
      headers: { accept: "text/event-stream" },
    });
    expect(status).toBe(200);
    expect(text).toContain("task_complete");
  } finally {
    await harness.close();
  }
});
