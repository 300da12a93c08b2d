/** Runs the walkthrough of docs/mesh.md: three servers by the real command line, over real TLS. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { entry, type Folder, folder } from "../cli/cli.js";
import { meshCommand } from "./command.js";
import { eventually, freePort } from "./kit.js";

const docs = readFileSync(new URL("../../docs/mesh.md", import.meta.url), "utf8");
const section = docs.slice(docs.indexOf("## Three agents"), docs.indexOf("## On the internet"));
const blocks = [...section.matchAll(/```sh\n([\s\S]*?)```/gu)].map(([, block = ""]) => block);

// Some fifteen processes, each of which takes seconds to start on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

let place: Folder;
let path: string;
const servers: ChildProcess[] = [];
const ports = new Map<string, number>();

/** Replaces the ports of the documentation, which may be in use. */
function moved(block: string): string {
  return block.replace(/\b(8001|8002|8003|8441|8442|8443)\b/gu, (port) => String(ports.get(port)));
}

function shell(script: string): Promise<{ code: number | null; out: string; errors: string }> {
  const child = spawn("sh", ["-e", "-c", script], {
    cwd: place.path,
    env: { PATH: process.env.PATH, HOME: place.path },
  });
  let out = "";
  let errors = "";
  child.stdout.on("data", (chunk) => {
    out += String(chunk);
  });
  child.stderr.on("data", (chunk) => {
    errors += String(chunk);
  });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, out, errors })));
}

const mesh = (command: string) =>
  meshCommand([...command.matchAll(/'([^']*)'|(\S+)/gu)].map(([, quoted, plain]) => quoted ?? plain ?? ""));

const json = async (command: string) => JSON.parse((await mesh(at(command))).out);
const code = async (command: string) => (await mesh(at(command))).code;
/** Replaces the directories and files of the walkthrough. */
const at = (command: string) => command.replace(/\.\//gu, `${place.path}/.mailroom/`);

beforeAll(async () => {
  place = await folder();
  path = join(place.path, "node_modules", ".bin");
  for (const port of ["8001", "8002", "8003", "8441", "8442", "8443"]) ports.set(port, await freePort());
  await mkdir(path, { recursive: true });
  const program = join(path, "mailroom");
  await writeFile(program, `#!/bin/sh\nexec "${process.execPath}" "${await entry()}" "$@"\n`);
  await chmod(program, 0o755);
});
afterAll(async () => {
  await Promise.all(
    servers.map((server) => {
      const ended = new Promise((resolve) => server.once("close", resolve));
      server.kill("SIGKILL");
      return ended;
    }),
  );
  await place[Symbol.asyncDispose]();
});

describe("the walkthrough of docs/mesh.md", () => {
  const [setUp = "", serve = "", talk = ""] = blocks;

  it("[ASP-INFR-01] the walkthrough works as documented", async () => {
    expect(blocks).toHaveLength(3);
    expect(await shell(moved(setUp))).toMatchObject({ code: 0 });

    await Promise.all(
      moved(serve)
        .trim()
        .split("\n")
        .map(async (line) => {
          // Without npx, which would not pass on the signals to the server.
          const [, , ...args] = line.split(" ");
          const server = spawn(join(path, "mailroom"), [...args, "--json"], {
            cwd: place.path,
            env: { PATH: process.env.PATH, HOME: place.path },
          });
          servers.push(server);
          await new Promise<void>((resolve, reject) => {
            let errors = "";
            server.stderr.on("data", (chunk) => {
              errors += String(chunk);
            });
            server.stdout.once("data", () => resolve());
            server.once("close", () => reject(new Error(`the server ended: ${errors}`)));
          });
        }),
    );

    const talked = await shell(moved(talk));
    expect(talked).toMatchObject({ code: 0 });
    for (const agent of ["alice", "bob", "carol"]) expect(talked.out).toContain(`agent id: ${agent}`);

    // The swarms of bob and carol answer the question once each.
    await eventually(async () => {
      const { messages } = await json("messages --data ./alice --no-mark-read");
      return messages
        .filter(({ type }: { type: string }) => type === "message")
        .map(({ sender_id }: { sender_id: string }) => sender_id)
        .sort();
    }, ["bob", "carol"]);
    const { messages } = await json("messages --data ./bob --limit 20");
    const texts = messages.map(({ content }: { content: string }) => content);
    expect(texts).toEqual(expect.arrayContaining(["What is 6 * 7?", "hello you"]));
    expect(await json("sent --data ./alice --count")).toMatchObject({ failed: 0 });
  });

  it("mute, approve, kick, transfer, rotate, export, leave and dissolve work through running servers", async () => {
    const members = async (agent: string, swarm: string) => {
      const { swarms } = await json(`list --data ./${agent} --members`);
      const one = swarms.find(({ alias }: { alias: string }) => alias === swarm);
      return (
        one && {
          master: one.master,
          members: one.members.map(({ agent_id }: { agent_id: string }) => agent_id).sort(),
        }
      );
    };
    // A swarm with approval.
    const den = await json("create --data ./bob --name Den --require-approval");
    expect(den).toMatchObject({ status: "created", alias: "den", master: "bob" });
    const { invite_token } = await json("invite --data ./bob --swarm den --expires 1");
    expect(await json(`join --data ./carol --token '${invite_token}'`)).toMatchObject({ status: "pending" });
    expect(await json("pending --data ./bob --swarm den")).toMatchObject({
      pending: [{ agent_id: "carol" }],
    });
    expect(await json(`join --data ./alice --token '${invite_token}'`)).toMatchObject({ status: "pending" });
    expect(await code("reject --data ./bob --swarm den --agent alice")).toBe(0);
    expect(await code("approve --data ./bob --swarm den --agent carol")).toBe(0);
    // Carol is notified and joins by herself.
    const aliases = async () =>
      (await json("list --data ./carol")).swarms.map(({ alias }: { alias: string }) => alias).includes("den");
    await eventually(aliases, true);
    expect(await json(`join --data ./carol --token '${invite_token}'`)).toMatchObject({
      status: "already_member",
      alias: "den",
    });
    expect(await code(`join --data ./alice --token '${invite_token}'`)).toBe(4);
    const [{ invites }] = (await json("list --data ./bob --swarm den")).swarms;
    expect(await code(`revoke --data ./bob --swarm den --invite ${invites[0].key}`)).toBe(0);

    // Muted: carol notices nothing, bob receives nothing.
    expect(await json("mute --data ./bob --agent carol")).toEqual({
      status: "muted",
      type: "agent",
      id: "carol",
    });
    await json("send --data ./carol --swarm den --message unheard");
    await eventually(
      async () => (await json("sent --data ./carol --swarm den")).messages[0].status,
      "delivered",
    );
    const heard = await json("messages --data ./bob --swarm den --no-mark-read");
    expect(JSON.stringify(heard)).not.toContain("unheard");
    expect(await json("unmute --data ./bob --agent carol")).toMatchObject({ was_muted: true });

    // The new key is accepted by members that received the announcement.
    const { public_key } = await json("status --data ./carol");
    expect((await json("rotate-key --data ./carol")).public_key).not.toBe(public_key);
    await json("send --data ./carol --swarm den --to bob --message 'with a new key'");
    await eventually(async () => {
      const { messages } = await json("messages --data ./bob --swarm den --no-mark-read");
      return messages.some(({ content }: { content: string }) => content === "with a new key");
    }, true);

    // Transfer, and what the former master can no longer do.
    expect(await code("leave --data ./bob --swarm den")).toBe(1);
    await json("transfer --data ./bob --swarm den --agent carol");
    await eventually(() => members("bob", "den"), { master: "carol", members: ["bob", "carol"] });
    expect(await code("kick --data ./bob --swarm den --agent carol")).toBe(4);
    expect(await code("kick --data ./carol --swarm den --agent bob --reason 'so \"it\" is'")).toBe(0);
    await eventually(() => members("bob", "den"), undefined);
    expect(await code("dissolve --data ./carol --swarm den")).toBe(0);

    expect(await code("export --data ./carol --output ./carol.json")).toBe(0);
    expect((await json("import --data ./carol --input ./carol.json --merge")).status).toBe("imported");
    expect(await code("import --data ./bob --input ./carol.json --merge")).toBe(1);
    expect(await code("purge --data ./carol --messages")).toBe(0);
    expect(await code("leave --data ./carol --swarm lab")).toBe(0);
    await eventually(() => members("alice", "lab"), { master: "alice", members: ["alice", "bob"] });
    // Standard output contains only the result, and usage errors have their own exit code.
    expect(await code("invite --data ./alice --expires soon")).toBe(2);
    expect(await code("send --data ./alice --swarm nowhere --message x")).toBe(1);
  });
});
