/** Requests that a client pipelines on one connection: a few are served at once, the others wait unstarted. */
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { REQUESTS_AT_ONCE } from "../../src/http/pipelining.js";
import { gate, type Harness, startServer, testAuthenticator } from "./harness.js";

let harness: Harness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

const MANY = 2_000;

/** An authenticator that answers only after its release, and counts the calls. */
function gated() {
  const full = gate();
  const released = gate();
  const seen = { started: 0 };
  return {
    seen,
    full: full.opened,
    release: released.open,
    authenticator: {
      async authenticate(bearer: string | undefined) {
        seen.started++;
        if (seen.started >= REQUESTS_AT_ONCE) full.open();
        await released.opened;
        return testAuthenticator.authenticate(bearer);
      },
    },
  };
}

/** Pipelines messages for tasks of their own. */
function pipeline(socket: Socket, count: number): void {
  for (let n = 0; n < count; n++) {
    const body = JSON.stringify({ body: "[direct]", task_id: `t-${n}`, wait: false });
    socket.write(
      `POST /message HTTP/1.1\r\nhost: x\r\nauthorization: Bearer user-token\r\ncontent-type: application/json\r\n` +
        `content-length: ${body.length}\r\n\r\n${body}`,
    );
  }
}

describe("pipelined requests", () => {
  it("start a few at a time, and all are answered in order", async () => {
    const { seen, full, release, authenticator } = gated();
    harness = await startServer({ authenticator });
    const socket = connect(Number(new URL(harness.url).port), "127.0.0.1");
    pipeline(socket, MANY);
    await full;
    // Another connection is served through the same event loop: whatever had arrived has been parsed.
    for (let n = 0; n < 5; n++) expect((await harness.call("/health")).status).toBe(200);
    expect(seen.started).toBe(REQUESTS_AT_ONCE);
    release();
    let text = "";
    for await (const chunk of socket) {
      text += String(chunk);
      if (text.split("HTTP/1.1 ").length > MANY && text.endsWith("}")) break;
    }
    expect(text.match(/HTTP\/1\.1 202/g)).toHaveLength(MANY);
    const ids = [...text.matchAll(/"task_id":"t-(\d+)"/g)].map(([, n]) => Number(n));
    expect(ids).toEqual(Array.from({ length: MANY }, (_, n) => n));
  });

  it("do not start once their client has left", async () => {
    const { seen, full, release, authenticator } = gated();
    harness = await startServer({ authenticator });
    const { server } = harness;
    const open = () =>
      new Promise<number>((resolve) => server.app.server.getConnections((_, count) => resolve(count)));
    const socket = connect(Number(new URL(harness.url).port), "127.0.0.1");
    pipeline(socket, MANY);
    await full;
    for (let n = 0; n < 5; n++) expect((await harness.call("/health")).status).toBe(200);
    socket.resetAndDestroy();
    release();
    while ((await open()) > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(seen.started).toBeLessThan(3 * REQUESTS_AT_ONCE);
  });
});
