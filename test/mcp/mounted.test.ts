/** Tests MCP at `/mcp` of the real server and as `mailroom mcp`. */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { command, folder, run, serve } from "../cli/cli.js";
import { served } from "../kit/served.js";

async function connect(url: string, token: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    }),
  );
  return client;
}

async function connectStdio(args: readonly string[], cwd: string): Promise<Client> {
  const [program, ...rest] = await command(["mcp", ...args]);
  const client = new Client({ name: "test", version: "1" });
  await client.connect(
    new StdioClientTransport({
      command: program ?? "",
      args: rest,
      cwd,
      stderr: "ignore",
      env: { HOME: cwd },
    }),
  );
  return client;
}

async function textOf(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args });
  const [first] = content;
  return first?.type === "text" ? first.text : "";
}

describe("/mcp of the server", () => {
  it("[AGT-MCP-01] accepts a user's task, which the user also sees through other protocols", async () => {
    await using server = await served(ASKING_SWARM);
    const ann = await connect(server.url, "user:ann");
    expect(await textOf(ann, "post_task", { message: "hello", task_id: "t" })).toBe("You said: hello");
    const http = new MailClient(server.url, { token: "user:ann" });
    expect(await http.getTask("t")).toMatchObject({ task_id: "t" });
    await ann.close();
  });

  it("[AGT-MCP-02] lets a member serve its agent", async () => {
    await using server = await served(ASKING_SWARM);
    const posted = await new MailClient(server.url, { token: "user:ann" }).postMessage("wait", {
      wait: false,
    });
    const clerk = await connect(server.url, "member:clerk");
    expect(await textOf(clerk, "read_mail")).toContain("take your time");
    await clerk.callTool({
      name: "send_response",
      arguments: { target: "desk", subject: "Re", body: "I took it" },
    });
    const ann = await connect(server.url, "user:ann");
    await expect
      .poll(() => textOf(ann, "get_task", { task_id: posted.task_id }))
      .toContain("You said: I took it");
    await Promise.all([clerk.close(), ann.close()]);
  });

  it("[AGT-MCP-03] rejects other swarms and members without an agent", async () => {
    await using server = await served(ASKING_SWARM);
    const status = async (token: string) => {
      const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
      return (await fetch(`${server.url}/mcp`, { method: "POST", headers, body: "{}" })).status;
    };
    expect(await status("agent:other")).toBe(403);
    expect(await status("member:nobody")).toBe(403);
    expect(await status("member:desk")).toBe(403);
    expect(await status("nonsense:x")).toBe(401);
  });

  it("requires UUIDs when strict_ids is set", async () => {
    await using server = await served(ASKING_SWARM, "[server.settings]\nstrict_ids = true\n");
    const ann = await connect(server.url, "user:ann");
    expect(await textOf(ann, "post_task", { message: "hello", task_id: "t" })).toContain("must be a UUID");
    const task_id = randomUUID();
    expect(await textOf(ann, "post_task", { message: "hello", task_id })).toBe("You said: hello");
    await ann.close();
  });

  it("counts towards the caller's request limit", async () => {
    await using server = await served(ASKING_SWARM, "[limits]\nrequests_per_minute = 2\n");
    const status = async (token: string) => {
      const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
      return (await fetch(`${server.url}/mcp`, { method: "POST", headers, body: "{}" })).status;
    };
    expect(await status("user:ann")).not.toBe(429);
    expect(await status("user:ann")).not.toBe(429);
    expect(await status("user:ann")).toBe(429);
    expect(await status("user:bo")).not.toBe(429);
  });

  it("[AGT-MCP-06] accepts browsers only from configured origins", async () => {
    const origin = "https://desk.example.com";
    await using server = await served(ASKING_SWARM, `[server]\ncors_origins = ["${origin}"]\n`);
    const preflight = await fetch(`${server.url}/mcp`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "DELETE",
        "access-control-request-headers": "authorization,content-type,mcp-session-id,mcp-protocol-version",
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe(origin);
    expect(preflight.headers.get("access-control-allow-methods")).toContain("DELETE");
    const allowed = preflight.headers.get("access-control-allow-headers")?.toLowerCase().split(/, */);
    expect(allowed).toEqual(
      expect.arrayContaining(["authorization", "content-type", "mcp-session-id", "mcp-protocol-version"]),
    );
    const call = (from: string, url: string) =>
      fetch(`${url}/mcp`, {
        method: "POST",
        headers: {
          origin: from,
          authorization: "Bearer user:ann",
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
      });
    const answer = await call(origin, server.url);
    expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
    expect(answer.headers.get("access-control-expose-headers")?.toLowerCase()).toContain("mcp-session-id");
    const stranger = await call("https://evil.example.com", server.url);
    expect(stranger.status).toBe(403);
    expect(stranger.headers.get("access-control-allow-origin")).not.toBe("https://evil.example.com");

    await using closed = await served(ASKING_SWARM);
    expect((await call(closed.url, closed.url)).headers.get("access-control-allow-origin")).toBeNull();
  });

  it("is not served when it is disabled", async () => {
    await using server = await served(ASKING_SWARM, "[mcp]\nenabled = false\n");
    expect((await fetch(`${server.url}/mcp`, { method: "POST" })).status).toBe(404);
  });
});

/** The input of a script: written at once, without a final line break. */
function script(...calls: readonly { readonly name: string; readonly arguments: Record<string, unknown> }[]) {
  const opening = {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "script", version: "1" },
  };
  return [
    { jsonrpc: "2.0", id: 0, method: "initialize", params: opening },
    { jsonrpc: "2.0", method: "notifications/initialized" },
    ...calls.map((params, index) => ({ jsonrpc: "2.0", id: index + 1, method: "tools/call", params })),
  ]
    .map((message) => JSON.stringify(message))
    .join("\n");
}

describe("mailroom mcp", { timeout: 60_000 }, () => {
  it("[AGT-MCP-04] connects to the server that uses the data directory", async () => {
    await using here = await folder();
    await writeFile(join(here.path, "swarms.json"), ASKING_SWARM);
    await using server = await serve(["--dev"], { cwd: here.path });
    const clerk = await connectStdio(["--as", "member:clerk"], here.path);
    await new MailClient(server.url, { token: "user:ann" }).postMessage("wait", { wait: false });
    expect(await textOf(clerk, "read_mail")).toContain("take your time");
    await clerk.close();

    const elsewhere = await connectStdio(["--url", server.url, "--token", "user:ann"], here.path);
    expect(await textOf(elsewhere, "list_tasks")).toContain("running");
    await elsewhere.close();
  });

  it("[AGT-MCP-05] starts a server in its own process only if none is running, and stores its tasks", async () => {
    await using here = await folder();
    await writeFile(join(here.path, "swarms.json"), ASKING_SWARM);
    const first = await connectStdio(["--as", "user:ann"], here.path);
    expect(await textOf(first, "post_task", { message: "hello", task_id: "t" })).toBe("You said: hello");
    // The second one finds the first.
    const second = await connectStdio(["--as", "user:ann"], here.path);
    expect(await textOf(second, "get_task", { task_id: "t" })).toContain("You said: hello");
    await second.close();
    await first.close();
    const third = await connectStdio(["--as", "user:ann"], here.path);
    expect(await textOf(third, "get_task", { task_id: "t" })).toContain("You said: hello");
    await third.close();
  });

  it("answers all requests before it ends with its input", async () => {
    await using here = await folder();
    await writeFile(join(here.path, "swarms.json"), ASKING_SWARM);
    const answers = async (message: string) => {
      const input = script(
        { name: "list_tasks", arguments: {} },
        { name: "post_task", arguments: { message } },
      );
      const { code, stdout } = await run(["mcp", "--as", "user:ann"], { cwd: here.path, input });
      expect(code).toBe(0);
      const lines = stdout.trimEnd().split("\n");
      return new Map(
        lines.map((line) => {
          const { id, result } = JSON.parse(line);
          return [id, result.content?.[0].text ?? ""];
        }),
      );
    };
    const alone = await answers("hello");
    expect([...alone.keys()].sort()).toEqual([0, 1, 2]);
    expect(alone.get(2)).toBe("You said: hello");

    await using _server = await serve(["--dev"], { cwd: here.path });
    const bridged = await answers("hello again");
    expect([...bridged.keys()].sort()).toEqual([0, 1, 2]);
    expect(bridged.get(2)).toBe("You said: hello again");
  });

  it("ends with its input when the request was cancelled", async () => {
    await using here = await folder();
    await writeFile(join(here.path, "swarms.json"), ASKING_SWARM);
    const input = [
      script({ name: "read_mail", arguments: { wait_seconds: 50 } }),
      JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }),
    ].join("\n");
    // Longer than the test's time limit.
    const { code, stdout } = await run(["mcp", "--as", "member:clerk"], { cwd: here.path, input });
    expect({
      code,
      ids: stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).id),
    }).toEqual({
      code: 0,
      ids: [0],
    });
  }, 40_000);
});
