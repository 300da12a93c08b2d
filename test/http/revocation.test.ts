/** A revoked token shows nothing, even on streams that it opened before. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CreatedToken, createAuthenticator, Tokens } from "../../src/auth/index.js";
import { systemClock } from "../../src/base/index.js";
import { type Mount, NO_INPUT } from "../../src/extension/index.js";
import { loadConfig } from "../../src/server/catalog.js";
import { openStore } from "../../src/store/index.js";
import { type Harness, parseStream, startServer } from "./harness.js";

let tokens: Tokens;
let harness: Harness;
let stolen: CreatedToken;
let good: CreatedToken;

/** Begins an answer and never ends it. */
const DOOR: Mount = {
  path: "/door",
  roles: ["user"],
  operations: [
    {
      ...NO_INPUT,
      id: "openDoor",
      method: "GET",
      tag: "agents",
      summary: "A door",
      answers: { 200: { description: "" } },
    },
  ],
  handle: ({ response }) =>
    new Promise((resolve) => {
      response.once("close", resolve);
      response.write("begun");
    }),
};

beforeEach(async () => {
  const store = await openStore({ path: ":memory:" });
  tokens = new Tokens({ store, clock: systemClock });
  const { settings } = loadConfig({ flags: {}, env: {}, directory: "/" });
  // Several providers behind one authenticator.
  const authenticator = await createAuthenticator(
    {
      ...settings.auth,
      mode: ["token", "service"],
      tokenInfoEndpoint: "http://127.0.0.1:1/",
      dev: false,
    },
    { tokens, clock: systemClock },
  );
  harness = await startServer({ authenticator, room: { store }, mounts: [DOOR] });
  stolen = await tokens.create({ role: "user", id: "ann" });
  good = await tokens.create({ role: "user", id: "ann" });
  await harness.call("/message", { token: good.token, json: { body: "[direct] one", task_id: "t" } });
});
afterEach(() => harness.close());

/** Reads to the end, and reports when it has begun. */
async function open(path: string, { token }: CreatedToken) {
  const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
  const response = await fetch(`${harness.url}${path}`, { headers });
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value ?? "";
  const ended = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += value;
    }
  })();
  return { ended, seen: () => text, cancel: () => reader.cancel() };
}

describe("revoking a token", () => {
  it("ends its streams before they show anything else, and leaves those of other tokens", async () => {
    const theirs = await open("/tasks/t/events", stolen);
    const ours = await open("/tasks/t/events", good);
    await tokens.revoke(stolen.info.tokenId);
    await harness.call("/message", { token: good.token, json: { body: "[direct] secret", task_id: "t" } });
    const seen = JSON.stringify(parseStream(await theirs.ended));
    expect(seen).toContain("one");
    expect(seen).not.toContain("secret");
    await expect.poll(ours.seen).toContain("secret");
    await ours.cancel();
    expect((await harness.call("/tasks/t/events", { token: stolen.token })).status).toBe(401);
  });

  it("ends its open requests at mounts", async () => {
    const theirs = await open("/door", stolen);
    await tokens.revoke(stolen.token);
    await expect(theirs.ended).rejects.toThrow();
  });
});
