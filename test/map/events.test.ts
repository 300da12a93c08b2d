/** Interception, events, adoption levels and races. */
import type { AgentConnection, ClientConnection } from "@multi-agent-protocol/sdk";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import {
  codeOf,
  gather,
  Harness,
  OPEN,
  type ServerOptions,
  text,
  until,
  withBothPolicies,
} from "./harness.js";

let map: Harness;
let client: ClientConnection;
let ann: AgentConnection;
let bob: AgentConnection;
let cyd: AgentConnection;

async function start(options: ServerOptions = {}): Promise<void> {
  map = await Harness.start(options);
  client = await map.client();
  [ann, bob, cyd] = [await map.agent("ann"), await map.agent("bob"), await map.agent("cyd")];
}

/** Restarts the server on a disk that the test controls. */
async function startOn(disk: FaultyDisk, options: ServerOptions = {}): Promise<void> {
  await map.stop();
  await start({ ...options, store: await openStoreOn(disk) });
}

beforeEach(() => start());
afterEach(() => map.stop());

const turnsOf = async (conversationId: string) => (await ann.listTurns({ conversationId })).turns;

async function conversation(
  params: Parameters<AgentConnection["createConversation"]>[0] = {},
): Promise<string> {
  return (await ann.createConversation(params)).conversation.id;
}

interface Mail {
  readonly meta?: { readonly mail?: unknown };
  readonly id: string;
}

withBothPolicies("interception", () => {
  it("[MAP-INTC-01, MAP-INTC-02, MAP-CONV-04] one turn per message, under the id of the message", async () => {
    const id = await conversation({ initialParticipants: [{ id: "bob" }, { id: "cyd" }] });
    const received: string[] = [];
    for (const agent of [bob, cyd]) agent.onMessage(({ id: message }) => void received.push(message));
    const [root] = [(await ann.recordTurn({ conversationId: id, ...text("root") })).turn.id];
    const { thread } = await ann.createThread({ conversationId: id, rootTurnId: root });
    const mail = {
      conversationId: id,
      threadId: thread.id,
      inReplyTo: root,
      visibility: { type: "participants", ids: ["bob"] },
    };
    const sent = await ann.send({ agents: ["bob", "cyd"] }, { task: "look" }, { mail } as never);
    expect(sent).toMatchObject({ delivered: ["bob", "cyd"], _meta: { mail: { recorded: true } } });
    await until(() => received.length === 2);
    expect(received).toEqual([sent.messageId, sent.messageId]);
    expect((await turnsOf(id)).slice(1)).toEqual([
      {
        id: (sent as unknown as { _meta: { mail: { turnId: string } } })._meta.mail.turnId,
        conversationId: id,
        participant: "ann",
        timestamp: expect.any(Number),
        contentType: "data",
        content: { task: "look" },
        threadId: thread.id,
        inReplyTo: root,
        visibility: { type: "participants", ids: ["bob"] },
        source: { type: "intercepted", messageId: sent.messageId },
        status: "complete",
        metadata: {},
      },
    ]);
    await ann.sendWithMail({ broadcast: true }, undefined, id);
    expect((await turnsOf(id)).at(-1)).toMatchObject({ content: null, source: { type: "intercepted" } });
    expect(await turnsOf(id)).toHaveLength(3);
    expect(await codeOf(ann.sendWithMail({ agent: "nobody" }, {}, id))).toBe(2001);
    expect(await turnsOf(id)).toHaveLength(3);
  });

  it("[MAP-INTC-04] a message that cannot be recorded is still delivered", async () => {
    const disk = new FaultyDisk();
    await startOn(disk);
    const [id, closed] = [await conversation(), await conversation()];
    await ann.closeConversation(closed);
    const received: Mail[] = [];
    bob.onMessage((message) => void received.push(message as Mail));
    const send = async (who: AgentConnection, mail: unknown) => {
      const result = await who.send({ agent: "bob" }, { x: 1 }, { mail } as never);
      expect(result).toMatchObject({
        messageId: expect.any(String),
        delivered: ["bob"],
        _meta: { mail: { recorded: false } },
      });
      return (result as unknown as { _meta: { mail: { error: { code: number } } } })._meta.mail.error.code;
    };
    expect(await send(ann, { conversationId: "conv-x" })).toBe(10000);
    expect(await send(ann, { conversationId: closed })).toBe(10001);
    expect(await send(ann, { conversationId: id, threadId: "thread-x" })).toBe(10007);
    expect(await send(ann, { conversationId: id, inReplyTo: "turn-x" })).toBe(10006);
    expect(await send(cyd, { conversationId: id })).toBe(10002);
    for (const malformed of [
      null,
      7,
      {},
      { conversationId: id, visibility: { type: "participants", ids: [] } },
    ]) {
      expect(await send(ann, malformed)).toBe(-32602);
    }
    disk.refuse = ({ appends }) => (appends.length > 0 ? new Error("it was refused") : undefined);
    expect(await send(ann, { conversationId: id })).toBe(-32603);
    disk.refuse = () => undefined;
    await until(() => received.length === 10);
    expect(await turnsOf(id)).toEqual([]);
    // The conversation still works afterwards.
    await ann.recordTurn({ conversationId: id, ...text("fine") });
    expect(await turnsOf(id)).toHaveLength(1);
    expect(map.problems).toHaveLength(1);
  });

  it("slow storage does not delay the response", async () => {
    const disk = new FaultyDisk();
    await startOn(disk, { limits: { recordingTimeout: 30 } });
    const id = await conversation();
    disk.hold();
    const result = await ann.sendWithMail({ agent: "bob" }, {}, id);
    disk.release();
    expect(result).toMatchObject({
      delivered: ["bob"],
      _meta: { mail: { recorded: false, error: { code: 4000 } } },
    });
  });

  it("[MAP-LEVL-02] a level-1 agent becomes a member when it is addressed, and its reply is recorded under its own id", async () => {
    const id = await conversation();
    bob.onMessage((message) => {
      void bob.reply(message, { done: true }, { mail: (message as Mail).meta?.mail } as never);
    });
    const replies: unknown[] = [];
    ann.onMessage((message) => void replies.push(message.payload));
    const recorded = gather(await client.subscribe({ eventTypes: ["mail.turn.added"] }));
    await ann.sendWithMail({ agent: "bob" }, { do: "it" }, id);
    await until(() => replies.length === 1);
    await recorded.count(2);
    const turns = await turnsOf(id);
    expect(turns.map(({ participant, content }) => ({ participant, content }))).toEqual([
      { participant: "ann", content: { do: "it" } },
      { participant: "bob", content: { done: true } },
    ]);
    const { participants } = await ann.getConversation(id, { participants: true });
    expect(participants).toMatchObject([
      { id: "ann" },
      { id: "bob", role: "worker", _meta: { invitedBy: "ann" } },
    ]);
    await ann.sendWithMail({ broadcast: true }, {}, id);
    expect((await ann.getConversation(id)).conversation.participantCount).toBe(2);
  });

  it("[MAP-LEVL-01] a level-0 agent sees only the message", async () => {
    const id = await conversation();
    const received: unknown[] = [];
    bob.onMessage(({ payload }) => void received.push(payload));
    await ann.sendWithMail({ agent: "bob" }, { plain: 1 }, id);
    await until(() => received.length === 1);
    await bob.send({ agent: "ann" }, { answer: 1 });
    expect(await turnsOf(id)).toHaveLength(1);
  });
});

withBothPolicies("events", () => {
  it("[MAP-EVNT-02, MAP-EVNT-03] filters narrow by each field and by all fields together", async () => {
    const [id, other] = [
      await conversation({ initialParticipants: [{ id: "bob" }], initialTurn: text("root") }),
      await conversation(),
    ];
    const root = (await turnsOf(id))[0]?.id ?? "";
    const { thread } = await ann.createThread({ conversationId: id, rootTurnId: root });
    const subscribe = async (filter: Parameters<ClientConnection["subscribe"]>[0]) =>
      gather(await client.subscribe(filter));
    const all = await subscribe({ mail: {} });
    const ofConversation = await subscribe({ mail: { conversationId: id } });
    const ofThread = await subscribe({ mail: { threadId: thread.id } });
    const ofBob = await subscribe({ mail: { participantId: "bob" } });
    const ofData = await subscribe({ mail: { contentType: "data" } });
    const together = await subscribe({
      mail: { conversationId: id, threadId: thread.id, participantId: "bob", contentType: "data" },
    });
    const empty = await subscribe({ mail: { conversationId: "" } });
    const turns = await subscribe({ eventTypes: ["mail.turn.*" as never] });
    const both = await subscribe({ eventTypes: ["agent_registered", "mail.thread.created"], mail: {} });
    const record = (who: AgentConnection, more: object) =>
      who.recordTurn({ conversationId: id, ...text("x"), ...more });
    await record(ann, {});
    await record(bob, { threadId: thread.id });
    await record(bob, { threadId: thread.id, contentType: "data" });
    await record(ann, { threadId: thread.id, contentType: "data" });
    await map.agent("dan");
    await ann.createThread({ conversationId: id, rootTurnId: root, parentThreadId: thread.id });
    await bob.leaveConversation(id);
    await ann.recordTurn({ conversationId: other, ...text("x"), contentType: "data" });
    await ann.closeConversation(other);
    await all.count(8);
    const added = "mail.turn.added";
    expect(all.types()).toEqual([
      added,
      added,
      added,
      added,
      "mail.thread.created",
      "mail.participant.left",
      added,
      "mail.closed",
    ]);
    expect(empty.types()).toEqual(all.types());
    expect(ofConversation.types()).toEqual([
      added,
      added,
      added,
      added,
      "mail.thread.created",
      "mail.participant.left",
    ]);
    expect(ofThread.types()).toEqual([added, added, added, "mail.thread.created"]);
    expect(ofBob.types()).toEqual([added, added, "mail.participant.left"]);
    expect(ofData.types()).toEqual([added, added, added]);
    expect(together.types()).toEqual([added]);
    expect(turns.types()).toEqual([added, added, added, added, added]);
    expect(both.types()).toEqual(["mail.thread.created"]);
    expect(await codeOf(client.subscribe({ unknownField: [] } as never))).toBe(-32602);
    expect(await codeOf(client.subscribe({ mail: { turnId: "x" } } as never))).toBe(-32602);
  });

  it("core event types match with underscores and with dots", async () => {
    const dots = gather(await client.subscribe({ eventTypes: ["agent.*" as never] }));
    const underscores = gather(await client.subscribe({ eventTypes: ["agent_registered"] }));
    await map.agent("dan");
    await dots.count(1);
    await underscores.count(1);
    expect(dots.types()).toEqual(["agent_registered"]);
  });

  it("[MAP-EVNT-01] all eight events have exactly the protocol's fields", async () => {
    const seen = gather(await client.subscribe({ mail: {} }));
    const id = await conversation({ ...OPEN, type: "mixed", subject: "s" });
    await bob.joinConversation({ conversationId: id, role: "worker" });
    const { turn } = await bob.recordTurn({ conversationId: id, ...text("hello"), metadata: { k: 1 } });
    await map.map.context.conversations?.setTurnStatus(id, turn.id, "failed");
    const { thread } = await ann.createThread({ conversationId: id, rootTurnId: turn.id });
    const { summary } = await ann.getConversationSummary({ conversationId: id });
    await bob.leaveConversation(id, "bye");
    await ann.closeConversation(id, "done");
    await seen.count(9);
    const participant = {
      id: "bob",
      type: "agent",
      role: "worker",
      joinedAt: expect.any(Number),
      permissions: {
        canSend: true,
        canObserve: true,
        canInvite: false,
        canRemove: false,
        canCreateThreads: true,
        canSeeInternal: false,
        historyAccess: "full",
      },
      agentInfo: { agentId: "bob" },
    };
    expect(seen.events.map(({ type, data }) => [type, data])).toEqual([
      ["mail.created", { conversationId: id, type: "mixed", subject: "s", createdBy: "ann" }],
      [
        "mail.participant.joined",
        { conversationId: id, participant: expect.objectContaining({ id: "ann" }) },
      ],
      ["mail.participant.joined", { conversationId: id, participant }],
      ["mail.turn.added", { conversationId: id, turn }],
      ["mail.turn.updated", { conversationId: id, turnId: turn.id, status: "failed" }],
      ["mail.thread.created", { conversationId: id, thread }],
      ["mail.summary.generated", { conversationId: id, summary }],
      ["mail.participant.left", { conversationId: id, participantId: "bob", reason: "bye" }],
      ["mail.closed", { conversationId: id, closedBy: "ann", reason: "done" }],
    ]);
    const { turns } = await client.listTurns({ conversationId: id });
    expect(turns).toMatchObject([{ id: turn.id, status: "failed" }]);
  });

  it("[MAP-INTC-03] events name their source and their cause", async () => {
    const raw = await map.raw({ connect: { participantType: "client" } });
    await raw.call("map/subscribe", {});
    const id = await conversation({ initialTurn: text("x") });
    await ann.sendWithMail({ agent: "ann" }, {}, id);
    const isIntercepted = ({ params }: { params?: Record<string, unknown> }) =>
      JSON.stringify(params ?? {}).includes("intercepted");
    await raw.find(isIntercepted);
    const events = raw.frames.flatMap(({ method, params }) =>
      method === "map/event" && params !== undefined ? [params] : [],
    );
    const toMailEvent = (type: string) =>
      events.filter(({ event }) => (event as { type: string }).type === type);
    const [created] = toMailEvent("mail.created");
    expect(created?.event).toMatchObject({ id: created?.eventId, source: "ann" });
    expect(toMailEvent("mail.participant.joined")[0]?.causedBy).toEqual([created?.eventId]);
    const [first, intercepted] = toMailEvent("mail.turn.added");
    expect(first?.causedBy).toEqual([created?.eventId]);
    expect(intercepted?.causedBy).toEqual([toMailEvent("message_sent")[0]?.eventId]);
  });

  it("[MAP-LEVL-05] an observing client sees all public turns and cannot write", async () => {
    const live = gather(await client.subscribe({ mail: {} }));
    const id = await conversation({ initialParticipants: [{ id: "bob" }] });
    const say = (words: string, more: object = {}) =>
      ann.recordTurn({ conversationId: id, ...text(words), ...more });
    await say("public");
    await say("private", { visibility: { type: "private" } });
    await say("internal", { metadata: { internal: true } });
    await say("for bob", { visibility: { type: "participants", ids: ["bob"] } });
    await say("also public", { visibility: { type: "all" } });
    const { turns } = await client.listTurns({ conversationId: id });
    expect(turns.map(({ content }) => content)).toEqual([{ text: "public" }, { text: "also public" }]);
    expect((await client.listConversations()).conversations.map((one) => one.id)).toEqual([id]);
    await live.count(5);
    expect(live.events.filter(({ type }) => type === "mail.turn.added")).toHaveLength(2);
    expect(await codeOf(client.recordTurn({ conversationId: id, ...text("x") }))).toBe(10002);
    expect(await codeOf(client.closeConversation(id))).toBe(10002);
    expect(
      await codeOf(
        client.inviteToConversation({ conversationId: id, participant: { id: "x", role: "worker" } }),
      ),
    ).toBe(10002);
  });

  it("only admins can observe outside development mode", async () => {
    await map.stop();
    const authenticator = {
      authenticate: async (bearer = "") => {
        const [role, name] = bearer.split("-");
        return {
          ok: true as const,
          principal: { role: role as "user", id: name ?? "", provider: "token" as const },
        };
      },
    };
    map = await Harness.start({ dev: false, authenticator });
    const connect = (token: string) => map.client({ auth: { method: "bearer", token } });
    const [owner, other, admin] = [
      await connect("user-ann"),
      await connect("user-bob"),
      await connect("admin-root"),
    ];
    const { conversation: made, participant } = await owner.createConversation({ initialTurn: text("x") });
    expect(participant).toMatchObject({ id: "user:ann", type: "user" });
    expect(await codeOf(other.getConversation(made.id))).toBe(10002);
    expect((await admin.listTurns({ conversationId: made.id })).turns).toHaveLength(1);
    expect(await codeOf(admin.recordTurn({ conversationId: made.id, ...text("x") }))).toBe(10002);
  });

  it("events show a message's content to its sender and recipients, not to observers", async () => {
    const [watching, bobs] = [
      gather(await client.subscribe({ eventTypes: ["message_sent", "message_delivered"] })),
      gather(await bob.subscribe({ eventTypes: ["message_delivered"] })),
    ];
    const cyds = gather(await cyd.subscribe({ eventTypes: ["message_sent"] }));
    await ann.send({ agent: "bob" }, { secret: 1 }, { correlationId: "c" });
    await watching.count(2);
    await bobs.count(1);
    expect(JSON.stringify(watching.events)).not.toContain("secret");
    expect(bobs.events[0]?.data).toMatchObject({
      correlationId: "c",
      deliveredTo: ["bob"],
      message: { payload: { secret: 1 } },
    });
    await bob.send({ agent: "cyd" }, {});
    await cyds.count(1);
    expect(cyds.events).toHaveLength(1);
  });
});

withBothPolicies("races", () => {
  it("[MAP-OURS-03] of two concurrent joins under one id, one succeeds and the other fails", async () => {
    for (let round = 0; round < 20; round++) {
      const id = await conversation(OPEN);
      const raw = await map.raw();
      await raw.call("map/agents/register", { agentId: `twin-${round}` });
      const codes = (
        await Promise.all(Array.from({ length: 5 }, () => raw.request("mail/join", { conversationId: id })))
      ).map(({ error }) => error?.code);
      expect(codes.toSorted()).toEqual([10004, 10004, 10004, 10004, undefined]);
      expect((await ann.getConversation(id)).conversation.participantCount).toBe(2);
    }
  });

  it("two connections of one principal join concurrently", async () => {
    await map.stop();
    const principal = { role: "user" as const, id: "ann", provider: "token" as const };
    map = await Harness.start({
      dev: false,
      authenticator: { authenticate: async () => ({ ok: true, principal }) },
    });
    const auth = { method: "bearer", token: "x" };
    const host = await map.raw({ connect: { auth } });
    await host.call("map/agents/register", { agentId: "host" });
    const twins = await Promise.all(
      Array.from({ length: 8 }, () => map.raw({ connect: { auth, participantType: "client" } })),
    );
    for (let round = 0; round < 10; round++) {
      const { conversation: made } = await host.call("mail/create", { _meta: { actAs: "host" } });
      const { id } = made as { id: string };
      const codes = (
        await Promise.all(twins.map((twin) => twin.request("mail/join", { conversationId: id })))
      ).map(({ error }) => error?.code);
      expect(codes.filter((code) => code === undefined)).toHaveLength(1);
      expect(codes.filter((code) => code === 10004)).toHaveLength(7);
    }
  });

  it("[MAP-OURS-03] no turn follows the closing", async () => {
    for (let round = 0; round < 20; round++) {
      const id = await conversation({ initialParticipants: [{ id: "bob" }, { id: "cyd" }] });
      const seen = gather(await client.subscribe({ mail: { conversationId: id } }));
      const writers = [bob, cyd, bob, cyd].map(async (who, n) => {
        for (let k = 0; k < 5; k++) {
          const code = await codeOf(who.recordTurn({ conversationId: id, ...text(`${n}.${k}`) }));
          if (code === 10001) return k;
          expect(code).toBeUndefined();
        }
        return 5;
      });
      await ann.recordTurn({ conversationId: id, ...text("first") });
      await ann.closeConversation(id);
      const accepted = (await Promise.all(writers)).reduce((sum, count) => sum + count, 0);
      await until(() => seen.types().includes("mail.closed"));
      await codeOf(client.listAgents());
      expect(seen.types().at(-1)).toBe("mail.closed");
      expect(await turnsOf(id)).toHaveLength(accepted + 1);
      expect(seen.events).toHaveLength(accepted + 2);
    }
  });
});
