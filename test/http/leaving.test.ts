/** Clients that disconnect before their answer begins leave no state behind. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { makeCertificate } from "./certificate.js";
import { gate, type Harness, startServer, testAuthenticator } from "./harness.js";

let harness: Harness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

async function openStreams({ call }: Pick<Harness, "call">): Promise<number> {
  const { text } = await call("/metrics", { token: "admin-token" });
  return Number(/^mailroom_streams (\d+)/m.exec(text)?.[1]);
}

/** An authenticator that delays the token `slow`. */
function slowly() {
  const arrived = gate();
  const released = gate();
  return {
    arrived: arrived.opened,
    release: released.open,
    authenticator: {
      async authenticate(bearer: string | undefined) {
        if (bearer !== "slow") return testAuthenticator.authenticate(bearer);
        arrived.open();
        await released.opened;
        return testAuthenticator.authenticate("user-token");
      },
    },
  };
}

/** Resolves when a stream subscribes. */
function begun({ mailroom }: Harness): Promise<void> {
  const { bus } = mailroom;
  const subscribe = bus.subscribe.bind(bus);
  return new Promise((resolve) => {
    bus.subscribe = (channel, listener) => {
      if (channel.startsWith("delta")) resolve();
      return subscribe(channel, listener);
    };
  });
}

const ask = { token: "user-token", json: { body: "[direct]", task_id: "t" } };

describe("a stream ends if its client disconnected before it began", () => {
  it("over HTTP/1.1", async () => {
    const slow = slowly();
    harness = await startServer({ authenticator: slow.authenticator });
    const { call, url, server } = harness;
    await call("/message", ask);
    const connections = () =>
      new Promise<number>((resolve) => server.app.server.getConnections((_error, count) => resolve(count)));
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write("GET /tasks/t/events HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n");
    socket.write("authorization: Bearer slow\r\n\r\n");
    await slow.arrived;
    socket.destroy();
    await expect.poll(connections).toBe(0);
    const stream = begun(harness);
    slow.release();
    await stream;
    await expect.poll(() => openStreams({ call })).toBe(0);
  });

  it("over HTTP/2", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mailroom-tls-"));
    try {
      const tls = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
      makeCertificate(tls);
      const slow = slowly();
      harness = await startServer({ tls, authenticator: slow.authenticator });
      const session = connectHttp2(harness.url, { rejectUnauthorized: false });
      const get = (path: string, token: string, accept: string) =>
        session.request({ ":path": path, authorization: `Bearer ${token}`, accept });
      const text = async (path: string) => {
        let all = "";
        for await (const chunk of get(path, "admin-token", "*/*")) all += String(chunk);
        return all;
      };
      await harness.mailroom.instance({ role: "user", id: "alice" }).ask("[direct]", { taskId: "t" });
      const left = get("/tasks/t/events", "slow", "text/event-stream");
      left.on("error", () => {});
      await slow.arrived;
      left.close(constants.NGHTTP2_CANCEL);
      // Earlier requests on the same connection have been processed.
      await text("/health");
      const stream = begun(harness);
      slow.release();
      await stream;
      await expect.poll(() => text("/metrics")).toContain("mailroom_streams 0");
      session.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
