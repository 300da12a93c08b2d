/** A server embedded in a program: a swarm in code over every protocol, and extensions of its own. */
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { defineExtension } from "../../src/extension/index.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import {
  createServer,
  type MailroomServer,
  type ServerOptions,
  standardExtensions,
} from "../../src/server/index.js";
import { webhookCarrier } from "./extensions/webhook-carrier.js";
import { webhookDoor } from "./extensions/webhook-door.js";

const swarm = defineSwarm({
  name: "hello",
  enableInterswarm: true,
  agents: [
    defineAgent({
      name: "greeter",
      enableEntrypoint: true,
      canCompleteTasks: true,
      enableInterswarm: true,
      commTargets: ["ops@webhook"],
      run: (mail) => {
        if (mail.body.startsWith("tell ")) mail.request("ops@webhook", "Note", mail.body.slice(5));
        mail.complete(`Hello, ${mail.body}!`);
      },
    }),
  ],
});

describe("createServer", () => {
  const opened: MailroomServer[] = [];
  afterEach(async () => {
    for (const server of opened.splice(0)) await server.close(0);
  });

  async function serve(
    options: Partial<ServerOptions> = {},
  ): Promise<{ server: MailroomServer; url: string }> {
    const settings = { log: { level: "silent" }, ...options.settings } as const;
    const server = await createServer({ swarm, data: false, dev: true, ...options, settings });
    opened.push(server);
    return { server, url: await server.listen({ port: 0 }) };
  }

  it("serves a swarm from code over MAIL, MAP, MCP and A2A on one port", async () => {
    const { url } = await serve();
    const answer = await new MailClient(url, { token: "user:ann" }).postMessage("world");
    expect(answer).toMatchObject({ status: "completed", response: "Hello, world!" });
    const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: object };
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(["/message", "/interswarm/forward", "/swarms", "/mcp", "/a2a"]),
    );
    const card = await fetch(`${url}/.well-known/agent-card.json`);
    expect(card.status).toBe(200);
  });

  it("keeps tasks in its data directory, and a second server continues with them", async () => {
    const { mkdtempSync, rmSync } = await import("node:fs");
    const { tmpdir } = await import("node:os");
    const data = mkdtempSync(`${tmpdir()}/mailroom-create-`);
    onTestFinished(() => rmSync(data, { recursive: true, force: true }));
    const first = await serve({ data });
    await new MailClient(first.url, { token: "user:ann" }).postMessage("world", { taskId: "t" });
    await first.server.close(0);
    const second = await serve({ data });
    expect(await new MailClient(second.url, { token: "user:ann" }).getTask("t")).toMatchObject({
      status: "completed",
    });
  });

  it("takes settings in code, by module", async () => {
    const { url } = await serve({ settings: { mcp: { enabled: false }, server: { strictIds: true } } });
    expect((await fetch(`${url}/mcp`, { method: "POST" })).status).toBe(404);
    const refused = new MailClient(url, { token: "user:ann" }).postMessage("world", { taskId: "not-a-uuid" });
    await expect(refused).rejects.toMatchObject({ status: 400 });
  });

  it("serves a door that is one line in the list", async () => {
    const secret = "s3cret";
    const { url } = await serve({
      extensions: [...standardExtensions, webhookDoor],
      settings: { hooks: { secret } },
    });
    const body = "from a hook";
    const sign = (key: string) => createHmac("sha256", key).update(body).digest("hex");
    const post = (signature: string) =>
      fetch(`${url}/hooks`, { method: "POST", body, headers: { "x-signature": signature } });
    expect((await post(sign("wrong"))).status).toBe(401);
    const accepted = await post(sign(secret));
    expect(accepted.status).toBe(202);
    expect(await (await fetch(`${url}/hooks`)).json()).toEqual({ received: 1 });
    const { capabilities } = (await (await fetch(url)).json()) as { capabilities: string[] };
    expect(capabilities).toContain("hooks");
  });

  it("delivers mail through a carrier that is one line in the list, and retries until it is accepted", async () => {
    const received: unknown[] = [];
    let failures = 1;
    const target = createHttpServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        if (failures-- > 0) return response.writeHead(503).end();
        received.push(JSON.parse(Buffer.concat(chunks).toString("utf8")));
        response.writeHead(204).end();
      });
    });
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void target.close());
    const { port } = target.address() as AddressInfo;
    const { url } = await serve({
      extensions: [...standardExtensions, webhookCarrier],
      settings: { webhook: { target: `http://127.0.0.1:${port}/` } },
    });
    await new MailClient(url, { token: "user:ann" }).postMessage("tell everyone");
    await expect
      .poll(() => received, { timeout: 20_000 })
      .toMatchObject([
        {
          msg_type: "request",
          message: { subject: "Note", body: "everyone", recipient: { address: "ops@webhook" } },
        },
        // A swarm that received mail is notified when the task ends.
        { msg_type: "response", message: { subject: "::task_complete::" } },
      ]);
  });

  it("closes everything when a name is taken by two extensions, and names both", async () => {
    const other = {
      name: "other",
      create: ({ names }: { names: { claim(name: string): void } }) => void names.claim("hello"),
    };
    const failed = createServer({
      swarm,
      data: false,
      dev: true,
      extensions: [...standardExtensions, other],
    });
    await expect(failed).rejects.toMatchObject({
      code: "name_taken",
      message: expect.stringContaining("swarm"),
    });
  });

  it("reports an extension that is not well in /health", async () => {
    const { url } = await serve({
      extensions: [
        ...standardExtensions,
        {
          name: "sick",
          create: () => ({ health: () => ({ status: "degraded", detail: "no peer answers" }) as const }),
        },
      ],
    });
    expect(await (await fetch(`${url}/health`)).json()).toMatchObject({
      degraded: [{ extension: "sick", detail: "no peer answers" }],
    });
  });

  it("releases what it opened when the port is in use", async () => {
    const { url } = await serve();
    const port = Number(new URL(url).port);
    const server = await createServer({
      swarm,
      data: false,
      dev: true,
      settings: { log: { level: "silent" } },
    });
    await expect(server.listen({ port })).rejects.toMatchObject({ code: "port_in_use" });
  });

  it("rejects settings that contradict each other", async () => {
    const settings = { log: { level: "silent" }, server: { tls: { cert: "/nowhere.pem" } } } as const;
    await expect(createServer({ swarm, data: false, dev: true, settings })).rejects.toMatchObject({
      code: "bad_config",
    });
  });

  it("drains the other extensions when one cannot attach", async () => {
    const drained: string[] = [];
    const extensions = [
      { name: "first", create: () => ({ drain: () => void drained.push("first") }) },
      {
        name: "second",
        create: () => ({
          attach: () => {
            throw new Error("cannot attach");
          },
        }),
      },
    ];
    const settings = { log: { level: "silent" } } as const;
    await expect(createServer({ swarm, data: false, dev: true, settings, extensions })).rejects.toThrow(
      "cannot attach",
    );
    expect(drained).toEqual(["first"]);
  });

  it("delivers mail of an extension only between its start and its drain", async () => {
    const seen: string[] = [];
    const pager = defineExtension({
      name: "pager",
      create: () => ({
        carrier: {
          owns: (name: string) => name === "pager",
          async deliver() {
            seen.push("deliver");
            return { ok: true };
          },
        },
        start: async () => {
          await new Promise<void>((resolve) => setImmediate(resolve));
          seen.push("start");
        },
        drain: () => void seen.push("drain"),
      }),
    });
    const data = mkdtempSync(join(tmpdir(), "mailroom-create-"));
    onTestFinished(() => rmSync(data, { recursive: true, force: true }));
    const clerk = defineAgent({
      name: "clerk",
      enableEntrypoint: true,
      canCompleteTasks: true,
      enableInterswarm: true,
      commTargets: ["ops@pager"],
      run: (mail) => {
        mail.request("ops@pager", "Call", mail.body);
        mail.complete("sent");
      },
    });
    const options = {
      swarm: defineSwarm({ name: "desk", enableInterswarm: true, agents: [clerk] }),
      extensions: [pager],
      data,
      dev: true,
    };
    // The first process stores mail and never listens.
    const first = await createServer(options);
    await first.mailroom.user("ann").ask("hello");
    await first.close(0);
    seen.length = 0;
    const second = await createServer(options);
    await second.listen({ port: 0 });
    await expect.poll(() => seen.includes("deliver")).toBe(true);
    await second.close(0);
    expect(seen.indexOf("start")).toBe(0);
    expect(seen.lastIndexOf("deliver")).toBeLessThan(seen.indexOf("drain"));
  });

  it("that should listen twice refuses the second time and keeps serving", async () => {
    const { server, url } = await serve();
    await expect(server.listen({ port: 0 })).rejects.toMatchObject({ code: "wrong_state" });
    expect(await new MailClient(url, { token: "user:ann" }).whoami()).toMatchObject({ id: "ann" });
  });

  it("closes although an extension does not finish draining", async () => {
    const { server } = await serve({
      extensions: [
        ...standardExtensions,
        { name: "stuck", create: () => ({ drain: () => new Promise<void>(() => {}) }) },
      ],
    });
    await expect(server.close(10)).resolves.toBeUndefined();
  });
});
