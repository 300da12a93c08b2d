/**
 * Two servers that know each other, a third that does not answer, a mesh, conversations, and tasks of every outcome: what
 * the console shows, for its tests and pictures.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { initMesh, makeDevCertificates } from "../../src/mesh/index.js";
import { controlPath } from "../../src/server/control/path.js";
import { createServer, type MailroomServer } from "../../src/server/index.js";
import { meshCommand } from "../mesh/command.js";
import { freePort } from "../mesh/kit.js";
import { INCIDENT, opsSwarm, QUESTIONS, RESTART, vendorSwarm } from "./ops.js";

export interface Scene {
  /** Of the swarm `ops`, in development mode. */
  readonly url: string;
  readonly server: MailroomServer;
  /** The key and the id of a completed incident of `user:ann`. */
  readonly done: { readonly key: string; readonly id: string };
  /** The key of a task that waits for the approval of an action. */
  readonly approval: string;
  call<T>(path: string, who: string, body?: unknown): Promise<T>;
  post(who: string, body: string): Promise<string>;
  until(who: string, id: string, status: string): Promise<{ readonly key: string; readonly number: number }>;
  close(): Promise<void>;
}

interface Journal {
  readonly key: string;
  readonly status: string;
  readonly number: number;
}

/** Resolves when the finished incident, two that wait, an approval and the mesh are there. */
export async function openScene({ pace }: { readonly pace: number }): Promise<Scene> {
  const directory = await mkdtemp(join(tmpdir(), "mailroom-scene-"));
  const tls = join(directory, "tls");
  await makeDevCertificates(tls, Date.now());
  const certificates = {
    cert: join(tls, "dev.pem"),
    key: join(tls, "dev.key"),
    ca: join(tls, "dev-ca.pem"),
  };
  const servers: MailroomServer[] = [];
  const folderOf = (name: string) => join(directory, name);
  async function start(agentId: string, swarm: ReturnType<typeof opsSwarm>): Promise<string> {
    const port = await freePort();
    const data = folderOf(agentId);
    initMesh({ directory: data, agentId, endpoint: `https://localhost:${port}/swarm`, dev: true });
    const server = await createServer({
      swarm,
      dev: true,
      data,
      settings: { log: { level: "silent" }, mesh: { listen: `localhost:${port}`, ...certificates } },
    });
    servers.push(server);
    const url = await server.listen({ port: 0 });
    const path = controlPath(data);
    if (path !== undefined) await server.openControl(path);
    return url;
  }
  const close = async () => {
    for (const server of servers) await server.close(0);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const url = await start("ops-desk", opsSwarm({ pace, vendor: true }));
    const vendor = await start("vendor-sec", vendorSwarm());
    await start("audit-bot", vendorSwarm("audit"));
    const [server] = servers;
    if (server === undefined) throw new Error("there is no server");

    const call = async <T>(path: string, who: string, body?: unknown, base = url): Promise<T> => {
      const response = await fetch(`${base}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${who}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
      return JSON.parse(text);
    };
    const post = async (who: string, body: string) =>
      (await call<{ task_id: string }>("/message", who, { body, wait: false })).task_id;
    const until = async (who: string, id: string, status: string) => {
      while (true) {
        const journal = await call<Journal>(`/tasks/${id}/journal?limit=1`, who);
        if (journal.status === status) return journal;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };

    await call("/swarms", "admin:dev", { name: "vendor", base_url: vendor, auth_token: "agent:ops" });
    await call("/swarms", "admin:dev", { name: "ops", base_url: url, auth_token: "agent:vendor" }, vendor);
    await call("/swarms", "admin:dev", {
      name: "auditor",
      base_url: "http://127.0.0.1:9",
      auth_token: "agent:ops",
    });
    for (const [index, body] of QUESTIONS.entries())
      await post(`user:${["ann", "raj", "mei"][index % 3]}`, body);
    const first = await post("user:ann", INCIDENT);
    await until("user:ann", first, "paused");
    await call(`/tasks/${first}/breakpoint`, "user:ann", {
      results: "yes, roll back. I watch the canary",
      wait: false,
    });
    const { key } = await until("user:ann", first, "completed");
    const second = await post(
      "user:mei",
      "Checkout in eu-west is slow again since 19:20: same cause as before?",
    );
    await until("user:mei", second, "paused");
    const third = await post("user:raj", RESTART);
    const { key: approval } = await until("user:raj", third, "paused");

    const mesh = async (agent: string, ...words: string[]) => {
      const { code, out, notes } = await meshCommand([...words, "--data", folderOf(agent)]);
      if (code !== 0) throw new Error(`mesh ${words.join(" ")}: ${notes}`);
      return JSON.parse(out) as { invite_token?: string };
    };
    await mesh("ops-desk", "create", "--name", "Incident partners", "--require-approval");
    const { invite_token: invite = "" } = await mesh("ops-desk", "invite", "--max-uses", "5");
    await mesh("vendor-sec", "join", "--token", invite);
    await call("/admin/mesh/approve", "admin:dev", { agent: "vendor-sec" });
    await mesh("ops-desk", "send", "--message", "Checkout is slow since 18:42. Is it on your side?");
    await mesh("audit-bot", "join", "--token", invite);
    return { url, server, done: { key, id: first }, approval, call, post, until, close };
  } catch (error) {
    await close();
    throw error;
  }
}
