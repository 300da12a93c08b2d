/** The task learns the delivery result of mail to mesh members, whichever process delivers it and when. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { AgentFunction } from "../../src/engine/agent.js";
import type { Entry } from "../../src/engine/task/entries.js";
import type { MeshOptions } from "../../src/mesh/options.js";
import { openSqliteStore } from "../../src/store/index.js";
import { agent, swarm } from "../kit/swarms.js";
import { type Agent, Mesh, textsAt } from "./harness.js";
import { type House, Houses } from "./servers.js";

let mesh: Mesh;
let houses: Houses;
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mailroom-mail-out-"));
  mesh = new Mesh();
  houses = new Houses(mesh);
});
afterEach(async () => {
  await houses[Symbol.asyncDispose]();
  await mesh.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Writes to both members at once and records the delivery results. Also asks bob, so that the task continues. */
function desk(told: string[] = []) {
  const wait = { id: "3", name: "await_message", args: {} };
  const clerk: AgentFunction = ({ messages: [{ message }] }) => {
    if (message.sender.address_type === "system") {
      told.push(message.body);
      return { calls: [wait] };
    }
    const { body } = message;
    const news = { subject: "News", body, targets: ["bob@lab", "carol@lab"] };
    const question = { subject: "Question", body: "how are you?", target: "bob@lab" };
    return {
      calls: [
        { id: "1", name: "send_broadcast", args: news },
        { id: "2", name: "send_request", args: question },
        wait,
      ],
    };
  };
  return swarm([
    agent("clerk", {
      targets: ["bob@lab", "carol@lab"],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
      run: clerk,
    }),
  ]);
}

async function lab(options: Partial<MeshOptions> = {}): Promise<Record<"alice" | "bob" | "carol", Agent>> {
  const store = await openSqliteStore({ directory });
  const alice = await mesh.agent("alice", options, store);
  const bob = await mesh.agent("bob");
  const carol = await mesh.agent("carol");
  await mesh.swarm(alice, bob, carol);
  return { alice, bob, carol };
}

async function say(house: House, body: string): Promise<void> {
  await house.mailroom.runtime.post({ role: "user", id: "ann" }, { body, taskId: body });
  await houses.settle();
}

/** The delivery results that the task received for the mail to both. */
async function carriedIn(house: House, taskId: string): Promise<Entry[]> {
  const task = await house.mailroom.user("ann").requireTask(taskId);
  const entries: Entry[] = [];
  for await (const { entry } of task.journal()) entries.push(entry);
  const news = entries.find((entry) => entry.t === "sent" && entry.message.msg_type === "broadcast");
  return entries.filter(
    (entry) => entry.t === "carried" && news?.t === "sent" && entry.message === news.message.id,
  );
}

/** Ends the process of an agent and keeps its disk. */
async function end(house: House, { name, agent, store }: Agent): Promise<void> {
  await houses.close(house);
  await agent.close();
  await store.close();
  mesh.agents.delete(`${name}.example.com`);
}

it.each([
  ["is delivered when the last of them has it", true],
  ["fails when one of them never got it", false],
])("mail to several members %s", async (_, comesBack) => {
  const { alice, bob, carol } = await lab({ deadline: 60_000 });
  const told: string[] = [];
  const house = await houses.open(alice, desk(told));
  mesh.down.add("carol.example.com");
  await say(house, "hello");
  expect(await textsAt(bob)).toContain("hello");
  expect(await carriedIn(house, "hello")).toEqual([]);
  if (comesBack) mesh.down.clear();
  await houses.pass(61_000);
  expect(await textsAt(carol)).toEqual(comesBack ? ["hello"] : []);
  expect(await carriedIn(house, "hello")).toMatchObject([{ ok: comesBack, swarm: "lab" }]);
  expect(told.filter((text) => text.includes("was not delivered"))).toHaveLength(comesBack ? 0 : 1);
});

it("the number of messages pending for a member is limited, and the sender is notified", async () => {
  const { alice } = await lab({ maxWaiting: 2 });
  const told: string[] = [];
  const house = await houses.open(alice, desk(told));
  mesh.down.add("carol.example.com");
  for (const body of ["one", "two", "three"]) await say(house, body);
  for (const body of ["one", "two"]) expect(await carriedIn(house, body)).toEqual([]);
  expect(await carriedIn(house, "three")).toMatchObject([{ ok: false }]);
  expect(told).toEqual([expect.stringContaining("too many messages are pending for carol")]);
});

it("a task learns of mail that was delivered before the mailroom was open", async () => {
  const first = await lab();
  const before = await houses.open(first.alice, desk());
  mesh.down.add("carol.example.com");
  await say(before, "hello");
  await end(before, first.alice);

  mesh.down.clear();
  const alice = await mesh.agent("alice", {}, await openSqliteStore({ directory }));
  await mesh.pass(600_000);
  expect(await textsAt(first.carol)).toEqual(["hello"]);
  const after = await houses.open(alice, desk());
  await houses.settle();
  expect(await carriedIn(after, "hello")).toMatchObject([{ ok: true }]);
});

it("a task learns of mail that arrived after its recovery and before the start of the carrier", async () => {
  const first = await lab();
  const before = await houses.open(first.alice, desk());
  mesh.down.add("carol.example.com");
  await say(before, "hello");
  await end(before, first.alice);

  const alice = await mesh.agent("alice", {}, await openSqliteStore({ directory }));
  const after = await houses.open(alice, desk(), {
    beforeStart: async () => {
      mesh.down.clear();
      await mesh.pass(600_000);
    },
  });
  expect(await textsAt(first.carol)).toEqual(["hello"]);
  await houses.settle();
  expect(await carriedIn(after, "hello")).toMatchObject([{ ok: true }]);
});

it("a task learns of mail sent by an earlier version, whose messages do not refer to their mail", async () => {
  const first = await lab();
  const before = await houses.open(first.alice, desk());
  for (const name of ["bob", "carol"]) mesh.down.add(`${name}.example.com`);
  await say(before, "hello");
  await end(before, first.alice);
  const db = new Database(join(directory, "mailroom.db"));
  const { changes } = db
    .prepare("UPDATE outbox SET payload = json_remove(payload, '$.mail') WHERE status = 'waiting'")
    .run();
  db.close();
  expect(changes).toBe(3);

  const alice = await mesh.agent("alice", {}, await openSqliteStore({ directory }));
  const after = await houses.open(alice, desk());
  await houses.settle();
  expect(await carriedIn(after, "hello")).toEqual([]);
  mesh.down.clear();
  await houses.pass(600_000);
  for (const member of [first.bob, first.carol]) expect(await textsAt(member)).toContain("hello");
  expect(await carriedIn(after, "hello")).toMatchObject([{ ok: true }]);
});
