/** Every MAIL task is a conversation (decision F4): for random tasks, in every state, through every interface. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemIds } from "../../src/base/node.js";
import { defineAction, defineAgent, defineSwarm } from "../../src/index.js";
import { buildRequest } from "../../src/mail/build.js";
import { BridgeHarness } from "./bridge-harness.js";
import { type RawClient, until } from "./harness.js";

const look = defineAction({
  name: "look_up",
  description: "Looks something up.",
  parameters: { type: "object" },
  idempotent: true,
  run: () => "in the drawer",
});
const askOwner = defineAction({
  name: "ask_owner",
  description: "Asks the owner.",
  parameters: { type: "object" },
  run: () => "never run: it is a breakpoint",
});

/** The first word of a message decides what the boss does. */
const WORDS = ["done", "look", "help", "shout", "break", "wait", "fail"] as const;
type Word = (typeof WORDS)[number];

function studio() {
  const boss = defineAgent({
    name: "boss",
    commTargets: ["helper", "coder"],
    enableEntrypoint: true,
    enableInterswarm: true,
    canCompleteTasks: true,
    actions: [look, askOwner],
    run: (mail) => {
      if (mail.fromType === "system") return mail.await();
      if (mail.result !== undefined) return mail.complete(`result: ${mail.result.content}`);
      if (mail.from === "helper") return mail.complete(`helper: ${mail.body}`);
      switch (mail.body.split(" ", 1)[0]) {
        case "look":
          return mail.act(look, {});
        case "help":
          return mail.request("helper", "help", mail.body);
        case "shout":
          mail.broadcast("news", mail.body);
          return mail.complete("shouted");
        case "break":
          return mail.act(askOwner, {});
        case "wait":
          return mail.request("coder", "work", mail.body);
        case "fail":
          throw new Error("on purpose");
        default:
          return mail.complete(`done: ${mail.body}`);
      }
    },
  });
  const helper = defineAgent({
    name: "helper",
    commTargets: ["boss"],
    run: (mail) => {
      if (mail.type === "request") mail.reply("with pleasure");
      else if (mail.type === "broadcast") mail.ignore();
      else mail.await();
    },
  });
  const coder = defineAgent({ name: "coder", commTargets: ["boss"], remote: true });
  return defineSwarm({ name: "studio", breakpointTools: ["ask_owner"], agents: [boss, helper, coder] });
}

type Owner =
  | { readonly role: "user"; readonly id: "ann" | "bob" }
  | { readonly role: "admin"; readonly id: "root" }
  | { readonly role: "swarm"; readonly id: "north" };

interface Plan {
  readonly owner: Owner;
  readonly words: readonly Word[];
  readonly end: "nothing" | "cancel" | "answer";
}

const ann: Owner = { role: "user", id: "ann" };
const north: Owner = { role: "swarm", id: "north" };

const plan: fc.Arbitrary<Plan> = fc.record({
  owner: fc.constantFrom<Owner>(ann, { role: "user", id: "bob" }, { role: "admin", id: "root" }, north),
  words: fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 3 }),
  end: fc.constantFrom("nothing", "cancel", "answer"),
});

/** Always included, so that no kind is missed. */
const EACH_KIND: readonly Plan[] = [
  { owner: ann, words: ["wait"], end: "nothing" },
  { owner: ann, words: ["break"], end: "nothing" },
  { owner: ann, words: ["break"], end: "answer" },
  { owner: ann, words: ["look", "help"], end: "nothing" },
  { owner: ann, words: ["fail", "fail", "fail"], end: "nothing" },
  { owner: ann, words: ["break"], end: "cancel" },
  { owner: { role: "admin", id: "root" }, words: ["shout"], end: "nothing" },
  { owner: north, words: ["wait"], end: "cancel" },
  { owner: north, words: ["done"], end: "nothing" },
  { owner: north, words: ["break"], end: "nothing" },
];

/** Readers, some with names that look like an owner's. */
const VIEWERS = [
  "user:ann",
  "user:bob",
  "admin:root",
  "admin:other",
  "user:root",
  "user:north",
  "member:coder",
];

interface TurnView {
  readonly id: string;
  readonly participant: string;
  readonly contentType: string;
  readonly content: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

let bridge: BridgeHarness;
const viewers = new Map<string, RawClient>();

beforeAll(async () => {
  bridge = await BridgeHarness.start({ swarm: studio() });
  for (const token of VIEWERS) {
    const client = await bridge.client(token);
    await client.call("map/subscribe", { filter: { eventTypes: ["mail.*"] } });
    viewers.set(token, client);
  }
});

afterAll(async () => {
  await bridge.stop();
  expect(bridge.problems).toEqual([]);
});

let next = 0;

/** Runs the task until it is idle and returns its key. */
async function perform({ owner, words, end }: Plan): Promise<string> {
  const taskId = `00000000-0000-4000-8000-${String(next++).padStart(12, "0")}`;
  const { runtime } = bridge.mailroom;
  let key = "";
  for (const [index, word] of words.entries()) {
    const body = `${word} ${index}`;
    const posted = await (owner.role === "swarm"
      ? receive(taskId, body)
      : runtime.post(owner, { taskId, body }));
    key = posted.key;
    await atRest(key);
    // A task that is paused for its owner accepts no other messages.
    if ((await statusOf(key)) === "paused") break;
  }
  const status = await statusOf(key);
  if (end === "answer" && status === "paused" && owner.role !== "swarm") {
    await runtime.answerBreakpoint(owner, taskId, { results: { content: "yes" } });
    await atRest(key);
  }
  if (end === "cancel" && (status === "running" || status === "paused"))
    await runtime.cancel(key, "somebody");
  return key;
}

/** As federation delivers it. */
function receive(taskId: string, body: string) {
  const owner = "user:zoe@north";
  const message = buildRequest({
    id: systemIds.uuid(),
    timestamp: new Date().toISOString(),
    taskId,
    sender: { address_type: "agent", address: "chief@north" },
    recipient: { address_type: "agent", address: "boss" },
    subject: "from afar",
    body,
  });
  return bridge.mailroom.runtime.receive({
    instance: { role: "swarm", id: "north" },
    taskId,
    owner,
    contributors: [owner],
    message,
    to: ["boss"],
    adopts: true,
    resumes: true,
  });
}

async function statusOf(key: string): Promise<string | undefined> {
  return (await bridge.mailroom.store.tasks.byKey(key))?.status;
}

/** Idle: only the coder, which never connects, has mail. */
async function atRest(key: string): Promise<void> {
  for (;;) {
    const quiet = await bridge.mailroom.runtime.read(
      key,
      ({ status, agents }) =>
        status !== "running" ||
        [...agents].every(([name, { mailbox, turn }]) => name === "coder" || (mailbox.length === 0 && !turn)),
    );
    if (quiet === true) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

interface Entry {
  readonly t: string;
  readonly name?: string;
  readonly content?: string;
  readonly breakpoint?: true;
  readonly to?: readonly string[];
  readonly message?: {
    readonly msg_type: string;
    readonly message: {
      readonly body: string;
      readonly subject: string;
      readonly sender: { readonly address_type: string; readonly address: string };
    };
  };
}

async function journal(key: string): Promise<Entry[]> {
  return (await bridge.mailroom.store.read(key)).flatMap(({ data }) => JSON.parse(data) as Entry[]);
}

/** The expected turns, read directly from the journal: author, content, and whether internal. */
function saidAndDone(entries: readonly Entry[]): unknown[] {
  return entries.flatMap(({ t, message, name, content, breakpoint, to }): unknown[] => {
    // The notice to other swarms repeats the ending.
    if (t === "sent" && to?.length === 0 && message?.message.subject.startsWith("::task_")) return [];
    if (message !== undefined && ["sent", "paused", "completed", "failed", "cancelled"].includes(t)) {
      const { sender, body, subject } = message.message;
      const { address_type: type, address } = sender;
      const who = type === "agent" ? address : type === "system" ? "system" : `${type}:${address}`;
      return [{ who, body, subject, type: message.msg_type, internal: type === "system" }];
    }
    return t === "action_finished" || (t === "result" && breakpoint === true)
      ? [{ action: name, result: content, internal: true }]
      : [];
  });
}

function asSaidAndDone({ participant, contentType, content, metadata }: TurnView): unknown {
  const internal = metadata.internal === true;
  if (contentType === "x-tool-call") return { action: content.name, result: content.result, internal };
  const { subject, msg_type: type } = metadata;
  return { who: participant, body: content.text, subject, type, internal };
}

const STATUS: Readonly<Record<string, string>> = {
  running: "active",
  paused: "paused",
  completed: "completed",
  failed: "failed",
  cancelled: "failed",
};

async function everyPage(client: RawClient, conversationId: string, limit: number): Promise<TurnView[]> {
  const turns: TurnView[] = [];
  for (let cursor: unknown; ; ) {
    const page = await client.call("mail/turns/list", {
      conversationId,
      limit,
      ...(cursor !== undefined && { cursor }),
    });
    turns.push(...(page.turns as TurnView[]));
    cursor = page.nextCursor;
    if (page.hasMore !== true) return turns;
  }
}

const liveTurns = (client: RawClient, conversationId: string): TurnView[] =>
  client
    .events()
    .filter(({ event }) => event.type === "mail.turn.added" && event.data.conversationId === conversationId)
    .map(({ event }) => event.data.turn as TurnView);

/** Every method shows the same conversation, which matches the journal. */
async function expectSeen(client: RawClient, key: string, owner: Owner): Promise<void> {
  const conversationId = `conv-${key}`;
  const entries = await journal(key);
  const status = (await statusOf(key)) ?? "";
  const { conversation, recentTurns, stats } = await client.call("mail/get", {
    conversationId,
    include: { recentTurns: 500, stats: true, participants: true },
  });
  expect(conversation).toMatchObject({
    type: owner.role === "swarm" ? "multi-agent" : "user-session",
    status: STATUS[status],
    createdBy: `${owner.role}:${owner.id}`,
    metadata: { task_status: status },
  });
  const turns = await everyPage(client, conversationId, 2);
  const isResumption = ({ content }: TurnView): boolean => content.event === "task_resumed";
  expect(turns.filter((turn) => !isResumption(turn)).map(asSaidAndDone)).toEqual(saidAndDone(entries));
  expect(turns.filter(isResumption)).toHaveLength(entries.filter(({ t }) => t === "resumed").length);
  expect((recentTurns as TurnView[]).toReversed()).toEqual(turns);
  expect(stats).toMatchObject({ totalTurns: turns.length });
  expect(await client.call("mail/replay", { conversationId, limit: 500 })).toMatchObject({
    turns,
    missedCount: turns.length,
  });
  const { events } = await client.call("map/replay", {
    filter: { eventTypes: ["mail.turn.added"], mail: { conversationId } },
    limit: 1000,
  });
  const replayed = events as { event: { data: { turn: TurnView } } }[];
  expect(replayed.map(({ event }) => event.data.turn)).toEqual(turns);
  await until(() => liveTurns(client, conversationId).length >= turns.length);
  expect(liveTurns(client, conversationId)).toEqual(turns);
  const { conversations } = await client.call("mail/list", {
    limit: 500,
    filter: { status: [STATUS[status]] },
  });
  expect((conversations as { id: string }[]).filter(({ id }) => id === conversationId)).toHaveLength(1);
}

const DOORS: readonly [string, Readonly<Record<string, unknown>>][] = [
  ["mail/get", { include: { recentTurns: 5, participants: true, stats: true } }],
  ["mail/turns/list", {}],
  ["mail/replay", {}],
  ["mail/summary", {}],
  ["mail/join", { catchUp: { from: "recent" } }],
  ["mail/leave", {}],
  ["mail/invite", { participant: { id: "user:bob" } }],
  ["mail/thread/list", {}],
  ["mail/thread/create", { rootTurnId: "turn-x" }],
  ["mail/turn", { contentType: "text", content: { text: "hello" } }],
  ["mail/close", {}],
];

/** No method shows anything of it. */
async function expectUnseen(client: RawClient, key: string, token: string): Promise<void> {
  const conversationId = `conv-${key}`;
  for (const [method, params] of DOORS) {
    const { error } = await client.request(method, { conversationId, ...params });
    expect({ method, code: error?.code }).toEqual({ method, code: 10000 });
  }
  const child = await client.request("mail/create", { parentConversationId: conversationId });
  // A member token cannot create conversations, with or without a parent.
  expect(child.error?.code).toBe(token.startsWith("member:") ? 10003 : 10000);
  const { conversations } = await client.call("mail/list", { limit: 500 });
  const { events } = await client.call("map/replay", { filter: { mail: { conversationId } }, limit: 1000 });
  const all = await client.call("map/replay", { filter: { eventTypes: ["mail.*"] }, limit: 1000 });
  expect(JSON.stringify([conversations, events, all, client.events()])).not.toContain(key);
}

describe("the conversation of a task", () => {
  it("[MAP-OURS-20] [MAP-OURS-21] matches its journal for its owner and admins, and no other caller sees it through any method", async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(plan, async (task) => {
        const key = await perform(task);
        const { owner } = task;
        seen.add(`${owner.role === "swarm" ? "adopted " : ""}${await statusOf(key)}`);
        for (const [token, client] of viewers) {
          const mayLook = token.startsWith("admin:") || token === `${owner.role}:${owner.id}`;
          if (mayLook) await expectSeen(client, key, owner);
          else await expectUnseen(client, key, token);
        }
      }),
      { numRuns: 40, examples: EACH_KIND.map((kind): [Plan] => [kind]) },
    );
    // The generated tasks covered several kinds.
    for (const status of ["running", "paused", "completed", "failed", "cancelled"]) {
      expect([...seen]).toContain(status);
    }
    expect([...seen].filter((kind) => kind.startsWith("adopted ")).length).toBeGreaterThanOrEqual(3);
  }, 120_000);
});
