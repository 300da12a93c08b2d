/** Hostile upgrades, open connections at close, and a store in memory. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { controlPath } from "../../src/server/control/path.js";
import { createServer, defineExtension } from "../../src/server/index.js";

const swarm = defineSwarm({
  name: "hello",
  agents: [
    defineAgent({
      name: "greeter",
      enableEntrypoint: true,
      canCompleteTasks: true,
      run: (mail) => void mail.complete("hello"),
    }),
  ],
});
const quiet = { log: { level: "silent" } } as const;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "mailroom-robust-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function rawUpgrade(target: { port: number } | { path: string }, url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", ...target });
    let text = "";
    socket.on("data", (chunk) => (text += chunk.toString()));
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
    socket.write(
      `GET ${url} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
  });
}

describe("upgrades", () => {
  it.each(["//", "http://[", "/%", "*"])("of %s, which is no path, are 404 and end nothing", async (url) => {
    const data = folder();
    const server = await createServer({ swarm, data, dev: true, settings: quiet });
    onTestFinished(() => server.close(0));
    const { port } = new URL(await server.listen({ port: 0 }));
    expect(await rawUpgrade({ port: Number(port) }, url)).toMatch(/^HTTP\/1.1 404/);
    const path = controlPath(data) ?? "";
    await server.openControl(path);
    expect(await rawUpgrade({ path }, url)).toMatch(/^HTTP\/1.1 404/);
  });
});

describe("close", () => {
  it("ends MAP connections over the control socket", async () => {
    const data = folder();
    const server = await createServer({ swarm, data, dev: true, settings: quiet });
    await server.listen({ port: 0 });
    const path = controlPath(data) ?? "";
    await server.openControl(path);
    const ws = new WebSocket(`ws+unix://${path}:/map`);
    const gone = new Promise((resolve) => ws.once("close", resolve));
    await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
    await server.close(0);
    await gone;
  });

  it("during listen leaves nothing open", async () => {
    const calls: string[] = [];
    let entered = () => {};
    const inFirst = new Promise<void>((resolve) => {
      entered = resolve;
    });
    let go = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const first = defineExtension({
      name: "first",
      create: () => ({
        start: async () => {
          entered();
          await gate;
          calls.push("first started");
        },
        close: () => void calls.push("first closed"),
      }),
    });
    const second = defineExtension({
      name: "second",
      create: () => ({
        start: () => void calls.push("second started"),
        close: () => void calls.push("second closed"),
      }),
    });
    const server = await createServer({
      swarm,
      data: false,
      dev: true,
      settings: quiet,
      extensions: [first, second],
    });
    const listening = server.listen({ port: 0 }).catch((error: unknown) => error);
    await inFirst;
    const closed = server.close(0);
    go();
    await closed;
    expect(await listening).toMatchObject({ code: "closed" });
    expect(calls).toEqual(["first started", "second closed", "first closed"]);
  });

  it("before listen: listen rejects", async () => {
    const server = await createServer({ swarm, data: false, dev: true, settings: quiet });
    await server.close(0);
    await expect(server.listen({ port: 0 })).rejects.toMatchObject({ code: "closed" });
  });

  it("takes any grace", async () => {
    const server = await createServer({ swarm, data: false, dev: true, settings: quiet });
    await server.listen({ port: 0 });
    await server.close(Number.POSITIVE_INFINITY);
  });
});

describe("createServer", () => {
  it("keeps everything in memory where the settings say so", async () => {
    const before = process.cwd();
    const directory = folder();
    process.chdir(directory);
    onTestFinished(() => process.chdir(before));
    const server = await createServer({
      swarm,
      dev: true,
      settings: { ...quiet, store: { database: "memory" } },
    });
    await server.close(0);
    expect(server.dataDirectory).toBeUndefined();
    expect(existsSync(join(directory, ".mailroom"))).toBe(false);
  });
});
