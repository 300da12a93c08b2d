/** The client over servers that are killed: real processes, one data directory. */
import { expect, it } from "vitest";
import {
  type ConnectionState,
  ConversationClient,
  ConversationError,
  MailClient,
  serveAgent,
} from "../../src/client/index.js";
import { run } from "../cli/cli.js";
import { movingServer } from "./moving-server.js";

const KILLS = 5;
const LONG = { timeout: 60_000, interval: 20 };

it("no event of a followed conversation is lost or repeated over kills of the server", async () => {
  await using server = await movingServer();
  const states: ConnectionState[] = [];
  await using reader = await ConversationClient.connect(server.url, {
    token: "user:ann",
    onState: (state) => states.push(state),
  });
  await using writer = await ConversationClient.connect(server.url, { token: "user:ann" });
  const { id } = await writer.create({ subject: "a long talk" });
  // Killed before the first event: the subscription continues from where it began.
  const events = await reader.follow({ conversationId: id });
  await server.restart();

  let writing = true;
  const accepted: string[] = [];
  const talking = (async () => {
    for (let n = 0; writing; n++) {
      try {
        accepted.push((await writer.say(id, `turn ${n}`)).id);
      } catch (error) {
        // Whether it was written is unknown.
        if (!(error instanceof ConversationError) || error.code !== "connection_lost") throw error;
      }
    }
    accepted.push((await writer.say(id, "the end")).id);
  })();

  const seen: string[] = [];
  const reading = (async () => {
    for await (const event of events) {
      if (event.type !== "mail.turn.added") continue;
      seen.push(event.data.turn.id);
      if (JSON.stringify(event.data.turn.content) === '{"text":"the end"}') return;
    }
  })();

  for (let kill = 1; kill < KILLS; kill++) {
    const before = seen.length;
    await expect.poll(() => seen.length, LONG).toBeGreaterThan(before + 3);
    await server.restart();
  }
  writing = false;
  await talking;
  await reading;

  const stored: string[] = [];
  for await (const turn of reader.turns(id)) stored.push(turn.id);
  expect(seen).toEqual(stored);
  expect(stored).toEqual(expect.arrayContaining(accepted));
  expect(states.filter(({ status }) => status === "open").length).toBeGreaterThan(KILLS / 2);
  for (const state of states) {
    if (state.status === "waiting") expect(state.reason).not.toBe("");
  }
}, 240_000);

it("an agent in another process answers every message once over kills of the server", async () => {
  await using server = await movingServer();
  const runs: string[] = [];
  await using agent = await serveAgent(server.url, {
    token: "member:clerk",
    name: "clerk",
    run: async (mail) => {
      runs.push(mail.taskId);
      await new Promise((resolve) => setImmediate(resolve));
      return `done with ${mail.taskId}`;
    },
  });
  const ann = new MailClient(server.url, { token: "user:ann" });
  const tasks: string[] = [];
  for (let life = 0; life < 3; life++) {
    const posted = Array.from({ length: 20 }, (_, n) => `task-${life}-${n}`);
    await Promise.all(posted.map((taskId) => ann.postMessage("wait", { taskId, wait: false })));
    tasks.push(...posted);
    // Some are answered, some are being answered, and some still wait.
    await expect.poll(() => runs.length, LONG).toBeGreaterThan(tasks.length - 15);
    await server.restart();
  }
  for (const taskId of tasks) {
    await expect.poll(async () => (await ann.getTask(taskId)).status, LONG).toBe("completed");
    const said = (await ann.getTask(taskId)).events.filter(
      ({ event, data }) => event === "new_message" && isAnswer(data.extra_data),
    );
    expect(said, taskId).toHaveLength(1);
  }
  expect([...new Set(runs)].toSorted()).toEqual(tasks.toSorted());
  expect(agent.state.status).toBe("open");
}, 240_000);

it("a revoked token ends a client and an agent in the middle of a stream, with the reason", async () => {
  await using server = await movingServer([]);
  const create = async (role: string, id: string) => {
    const { stdout, stderr } = await run(["token", "create", "--role", role, "--id", id, "--json"], server);
    expect(stderr).toBe("");
    return JSON.parse(stdout) as { readonly token: string; readonly id: string; readonly token_id?: string };
  };
  const user = await create("user", "ann");
  const member = await create("member", "clerk");
  const client = await ConversationClient.connect(server.url, { token: user.token });
  const agent = await serveAgent(server.url, { token: member.token, name: "clerk", run: () => "done" });
  const events = await client.follow();
  const next = expect(events.next()).rejects.toMatchObject({ code: "refused", number: 1001 });
  const finished = expect(agent.finished).rejects.toMatchObject({ code: "refused", number: 1001 });
  for (const { token_id, id } of [user, member]) {
    const { code, stderr } = await run(["token", "revoke", token_id ?? id], server);
    expect({ code, stderr }).toMatchObject({ code: 0 });
  }
  await next;
  await finished;
  await expect(client.create()).rejects.toMatchObject({ code: "refused", number: 1001 });
  expect(client.state).toMatchObject({ status: "closed", error: { number: 1001 } });
}, 120_000);

function isAnswer(data: Readonly<Record<string, unknown>>): boolean {
  const text = JSON.stringify(data);
  return text.includes('"address":"clerk"') && text.includes('"msg_type":"response"');
}
