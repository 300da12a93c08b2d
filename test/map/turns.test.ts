/** Turns, visibility, history, threads and summaries. */
import type { AgentConnection } from "@multi-agent-protocol/sdk";
import { afterEach, beforeEach, expect, it } from "vitest";
import { codeOf, gather, Harness, OPEN, text, withBothPolicies } from "./harness.js";

let map: Harness;
let ann: AgentConnection;
let bob: AgentConnection;
let cyd: AgentConnection;
let eve: AgentConnection;

beforeEach(async () => {
  map = await Harness.start();
  [ann, bob, cyd, eve] = [
    await map.agent("ann"),
    await map.agent("bob"),
    await map.agent("cyd"),
    await map.agent("eve"),
  ];
});
afterEach(async () => {
  await map.stop();
  expect(map.problems).toEqual([]);
});

type CreateParams = Parameters<AgentConnection["createConversation"]>[0];
type TurnParams = Parameters<AgentConnection["recordTurn"]>[0];
type Permissions = NonNullable<
  NonNullable<NonNullable<CreateParams>["initialParticipants"]>[number]["permissions"]
>;

async function conversation(params: CreateParams = {}): Promise<string> {
  return (await ann.createConversation(params)).conversation.id;
}

async function say(
  who: AgentConnection,
  conversationId: string,
  words: string,
  more: Partial<TurnParams> = {},
): Promise<string> {
  return (await who.recordTurn({ conversationId, ...text(words), ...more })).turn.id;
}

interface Spoken {
  readonly content: unknown;
}
const wordsOf = (turns: readonly Spoken[] = []) =>
  turns.map(({ content }) => (content as { text: string }).text);

/** What a participant sees of a conversation, by method. */
async function doors(who: AgentConnection, conversationId: string) {
  const got = await who.getConversation(conversationId, { recentTurns: 100, stats: true });
  const replay = await who.replayConversation({ conversationId, limit: 100 });
  return {
    list: wordsOf((await who.listTurns({ conversationId, limit: 100 })).turns),
    replay: wordsOf(replay.turns),
    missed: replay.missedCount,
    recent: wordsOf(got.recentTurns).toReversed(),
    total: got.stats?.totalTurns,
  };
}

const shown = (...words: string[]) => ({
  list: words,
  replay: words,
  missed: words.length,
  recent: words,
  total: words.length,
});

withBothPolicies("turns, visibility, history", () => {
  it("[MAP-ERRS-03] a participant that is not a member reads nothing", async () => {
    const id = await conversation({ initialTurn: text("secret") });
    expect(await codeOf(eve.getConversation(id))).toBe(10002);
    expect(await codeOf(eve.listTurns({ conversationId: id }))).toBe(10002);
    expect(await codeOf(eve.replayConversation({ conversationId: id }))).toBe(10002);
    expect(await codeOf(eve.getConversationSummary({ conversationId: id }))).toBe(10002);
    expect(await codeOf(eve.listThreads({ conversationId: id }))).toBe(10002);
  });

  it("[MAP-CONV-09] a private turn is visible to its author only, in every method", async () => {
    const id = await conversation({ ...OPEN, initialParticipants: [{ id: "bob" }] });
    const [forAnn, forBob] = [
      gather(await ann.subscribe({ mail: { conversationId: id } })),
      gather(await bob.subscribe({ mail: { conversationId: id } })),
    ];
    await say(ann, id, "public zebra");
    await say(ann, id, "private walrus", { visibility: { type: "private" } });
    await say(ann, id, "end");
    expect(await doors(ann, id)).toEqual(shown("public zebra", "private walrus", "end"));
    expect(await doors(bob, id)).toEqual(shown("public zebra", "end"));
    await forAnn.count(3);
    await forBob.count(2);
    expect(forBob.events.map(({ data }) => wordsOf([data.turn as Spoken])[0])).toEqual([
      "public zebra",
      "end",
    ]);
    const caught = await cyd.joinConversation({ conversationId: id, catchUp: { from: 0 } });
    expect(wordsOf(caught.history)).toEqual(["public zebra", "end"]);
    for (const who of [ann, bob]) {
      const { summary, keyPoints } = await who.getConversationSummary({
        conversationId: id,
        include: { keyPoints: true },
        regenerate: true,
      });
      expect(JSON.stringify([summary, keyPoints])).not.toContain("walrus");
    }
    const replayed = await map.raw({ connect: { participantType: "client" } });
    expect(JSON.stringify(await replayed.call("map/replay", { limit: 1000 }))).not.toContain("walrus");
  });

  it("[MAP-CONV-09] turns can be limited to participants and to roles", async () => {
    const id = await conversation({
      initialParticipants: [
        { id: "bob", role: "worker" },
        { id: "cyd", role: "observer" },
      ],
    });
    const forCyd = gather(await cyd.subscribe({ mail: { conversationId: id } }));
    await say(ann, id, "for bob", { visibility: { type: "participants", ids: ["bob", "nobody"] } });
    await say(bob, id, "for observers", { visibility: { type: "role", roles: ["observer"] } });
    expect(await doors(ann, id)).toEqual(shown("for bob"));
    expect(await doors(bob, id)).toEqual(shown("for bob", "for observers"));
    expect(await doors(cyd, id)).toEqual(shown("for observers"));
    await forCyd.count(1);
    expect(forCyd.events).toMatchObject([{ data: { turn: { content: { text: "for observers" } } } }]);
    const malformed = [
      { type: "participants", ids: [] },
      { type: "role", roles: ["king"] },
      { type: "x" },
      "all",
    ];
    for (const visibility of malformed) {
      expect(await codeOf(say(ann, id, "x", { visibility: visibility as never }))).toBe(-32602);
    }
  });

  it("[MAP-CONV-08] internal turns are visible with canSeeInternal only", async () => {
    const id = await conversation({
      initialParticipants: [{ id: "bob" }, { id: "cyd", permissions: { canSeeInternal: true } }],
    });
    await say(bob, id, "thinking", { metadata: { internal: true } });
    expect(await doors(ann, id)).toEqual(shown("thinking"));
    expect(await doors(bob, id)).toEqual(shown("thinking"));
    expect(await doors(cyd, id)).toEqual(shown("thinking"));
    await say(ann, id, "planning", { metadata: { internal: true } });
    expect(await doors(bob, id)).toEqual(shown("thinking"));
  });

  it("[MAP-CONV-07] history access limits turns to those after the join, or to none", async () => {
    const id = await conversation();
    const invite = (guest: string, permissions: Permissions) =>
      ann.inviteToConversation({
        conversationId: id,
        participant: { id: guest, role: "worker", permissions },
      });
    // Sent together, so that they share a millisecond.
    await Promise.all([
      say(ann, id, "before"),
      invite("bob", { historyAccess: "from-join" }),
      invite("cyd", { historyAccess: "none" }),
      say(ann, id, "after"),
    ]);
    expect(await doors(bob, id)).toEqual(shown("after"));
    for (const call of [
      cyd.listTurns({ conversationId: id }),
      cyd.replayConversation({ conversationId: id }),
      cyd.getConversationSummary({ conversationId: id }),
    ]) {
      expect(await codeOf(call)).toBe(10003);
    }
    expect((await cyd.getConversation(id, { recentTurns: 10 })).recentTurns).toEqual([]);
    const live = gather(await cyd.subscribe({ mail: { conversationId: id } }));
    await say(ann, id, "now");
    await live.count(1);
    expect(live.events).toMatchObject([
      { type: "mail.turn.added", data: { turn: { content: { text: "now" } } } },
    ]);
    await cyd.leaveConversation(id);
    expect(
      await codeOf(cyd.joinConversation({ conversationId: id, catchUp: { from: "recent" as never } })),
    ).toBe(10003);
  });

  it("[MAP-CONV-03, MAP-ERRS-09] content types are checked and contents returned unchanged", async () => {
    const id = await conversation();
    const record = (contentType: string, content?: unknown) =>
      codeOf(ann.recordTurn({ conversationId: id, contentType, content } as never));
    for (const contentType of ["text", "data", "event", "reference", "x-a", "x-tool-call"]) {
      expect(await record(contentType, { any: 1 })).toBeUndefined();
    }
    for (const contentType of ["x-", "foo", "", "Text"]) expect(await record(contentType, {})).toBe(10008);
    expect(await record("text")).toBe(-32602);
    expect(await record("text", "plain")).toBeUndefined();
    expect(await record("data", null)).toBeUndefined();
    const { turns } = await ann.listTurns({ conversationId: id });
    expect(turns.at(-2)?.content).toBe("plain");
    expect(turns.at(-1)?.content).toBeNull();
  });

  it("[MAP-ERRS-07, MAP-ERRS-08] threads and replied turns must exist in the conversation and be visible to the caller", async () => {
    const [id, other] = [await conversation({ initialParticipants: [{ id: "bob" }] }), await conversation()];
    const hidden = await say(ann, id, "hidden", { visibility: { type: "private" } });
    const foreign = await say(ann, other, "foreign");
    expect(await codeOf(say(bob, id, "x", { threadId: "thread-x" }))).toBe(10007);
    for (const inReplyTo of ["turn-x", hidden, foreign]) {
      expect(await codeOf(say(bob, id, "x", { inReplyTo }))).toBe(10006);
    }
    const reply = await say(ann, id, "x", { inReplyTo: hidden });
    expect((await ann.listTurns({ conversationId: id })).turns.at(-1)).toMatchObject({
      id: reply,
      inReplyTo: hidden,
    });
  });

  it("[MAP-METH-09] turns can be filtered and paged in both directions", async () => {
    const id = await conversation({ initialParticipants: [{ id: "bob" }] });
    const root = await say(ann, id, "0");
    const { thread } = await ann.createThread({ conversationId: id, rootTurnId: root });
    const { thread: inner } = await ann.createThread({
      conversationId: id,
      rootTurnId: root,
      parentThreadId: thread.id,
    });
    await say(bob, id, "1", { threadId: thread.id });
    await ann.recordTurn({
      conversationId: id,
      contentType: "data",
      content: { text: "2" },
      threadId: inner.id,
    });
    await say(bob, id, "private", { visibility: { type: "private" } });
    for (let n = 3; n < 10; n++) {
      await say(ann, id, `${n}`);
    }
    const all = (await ann.listTurns({ conversationId: id })).turns;
    const list = async (filter: Record<string, unknown>, more: Record<string, unknown> = {}) =>
      wordsOf((await ann.listTurns({ conversationId: id, filter, ...more } as never)).turns);
    expect(await list({ threadId: thread.id })).toEqual(["1"]);
    expect(await list({ threadId: thread.id, includeAllThreads: true })).toEqual(["1", "2"]);
    expect(await list({ includeAllThreads: false })).toEqual(["0", "3", "4", "5", "6", "7", "8", "9"]);
    expect(await list({ contentTypes: ["data", "x-a"] })).toEqual(["2"]);
    expect(await list({ participantId: "bob" })).toEqual(["1"]);
    expect(await list({ afterTurnId: all[7]?.id })).toEqual(["8", "9"]);
    expect(await list({ beforeTurnId: all[2]?.id })).toEqual(["0", "1"]);
    const stamp = all[5]?.timestamp ?? 0;
    expect(await list({ afterTimestamp: stamp })).toEqual(
      wordsOf(all.filter((turn) => turn.timestamp > stamp)),
    );
    expect(await list({ beforeTimestamp: stamp })).toEqual(
      wordsOf(all.filter((turn) => turn.timestamp < stamp)),
    );
    for (const order of ["asc", "desc"] as const) {
      const seen: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const bound = order === "asc" ? "afterTurnId" : "beforeTurnId";
        const page = await ann.listTurns({
          conversationId: id,
          order,
          limit: 3,
          ...(cursor !== undefined && { filter: { [bound]: cursor } }),
        });
        seen.push(...page.turns.map((turn) => turn.id));
        if (!page.hasMore) break;
        expect(page.nextCursor).toBe(seen.at(-1));
        cursor = page.nextCursor;
      }
      const ids = all.map((turn) => turn.id);
      expect(seen).toEqual(order === "asc" ? ids : ids.toReversed());
    }
    expect(await codeOf(ann.listTurns({ conversationId: id, filter: { afterTurnId: "turn-x" } }))).toBe(
      10006,
    );
    for (const limit of [0, -1, 1.5])
      expect(await codeOf(ann.listTurns({ conversationId: id, limit }))).toBe(-32602);
  });

  it("[MAP-OURS-03] two hundred concurrent turns have the same order everywhere", async () => {
    const agents: AgentConnection[] = [];
    for (let n = 0; n < 8; n++) agents.push(await map.agent(`agent-${n}`));
    const id = await conversation({ initialParticipants: agents.map((_, n) => ({ id: `agent-${n}` })) });
    const client = await map.client();
    const [watched, member] = [
      gather(await client.subscribe({ eventTypes: ["mail.turn.*" as never] })),
      gather(await ann.subscribe({ mail: { conversationId: id } })),
    ];
    const recorded = await Promise.all(
      Array.from({ length: 200 }, (_, n) => say(agents[n % agents.length] ?? ann, id, `${n}`)),
    );
    const { turns } = await ann.listTurns({ conversationId: id, limit: 500 });
    const ids = turns.map((turn) => turn.id);
    expect(new Set(ids)).toEqual(new Set(recorded));
    expect(
      (await ann.replayConversation({ conversationId: id, limit: 500 })).turns.map((turn) => turn.id),
    ).toEqual(ids);
    const idOf = ({ data }: { data: Record<string, unknown> }) => (data.turn as { id: string }).id;
    await watched.count(200);
    await member.count(200);
    expect(watched.events.map(idOf)).toEqual(ids);
    expect(member.events.map(idOf)).toEqual(ids);
    expect(turns.map((turn) => turn.timestamp)).toEqual(
      turns.map((turn) => turn.timestamp).toSorted((a, b) => a - b),
    );
  });

  it("[MAP-METH-05] a join can return missed turns", async () => {
    const id = await conversation(OPEN);
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) ids.push(await say(ann, id, `${n}`));
    const join = async (catchUp: Record<string, unknown>) => {
      const joined = await bob.joinConversation({ conversationId: id, catchUp } as never);
      await bob.leaveConversation(id);
      return joined;
    };
    expect(wordsOf((await join({ from: 0 })).history)).toEqual(["0", "1", "2", "3", "4", "5"]);
    expect(wordsOf((await join({ from: Date.now() + 1000 })).history)).toEqual([]);
    expect(wordsOf((await join({ from: "recent", limit: 2 })).history)).toEqual(["4", "5"]);
    expect(wordsOf((await join({ limit: 1 })).history)).toEqual(["5"]);
    expect(await codeOf(join({ from: "turn-x" }))).toBe(10006);
    expect(await codeOf(bob.leaveConversation(id))).toBe(10002);
    const joined = await bob.joinConversation({
      conversationId: id,
      catchUp: { from: ids[1] as never, limit: 2, includeSummary: true },
    });
    expect(wordsOf(joined.history)).toEqual(["2", "3"]);
    expect(joined.historyCursor).toBe(ids[3]);
    expect(joined.summary).toEqual(expect.stringContaining("6 turns"));
    const rest = await bob.replayConversation({ conversationId: id, fromTurnId: joined.historyCursor ?? "" });
    expect(wordsOf(rest.turns)).toEqual(["4", "5"]);
  });

  it("[MAP-METH-13] replay after a turn counts all missed turns", async () => {
    const id = await conversation({ initialParticipants: [{ id: "bob" }] });
    const root = await say(ann, id, "0");
    const { thread } = await ann.createThread({ conversationId: id, rootTurnId: root });
    await say(ann, id, "1");
    await say(ann, id, "2", { threadId: thread.id });
    await say(ann, id, "hidden", { visibility: { type: "private" } });
    await ann.recordTurn({ conversationId: id, contentType: "data", content: { text: "3" } });
    const replay = (more: Record<string, unknown>) =>
      bob.replayConversation({ conversationId: id, ...more } as never);
    const page = await replay({ fromTurnId: root, limit: 2 });
    expect(wordsOf(page.turns)).toEqual(["1", "2"]);
    expect(page).toMatchObject({ hasMore: true, missedCount: 3, nextCursor: page.turns[1]?.id });
    expect(wordsOf((await replay({ contentTypes: ["data"] })).turns)).toEqual(["3"]);
    expect(wordsOf((await replay({ threadId: thread.id })).turns)).toEqual(["2"]);
    expect(wordsOf((await replay({ fromTurnId: root, fromTimestamp: Date.now() + 1000 })).turns)).toEqual([
      "1",
      "2",
      "3",
    ]);
    expect(await codeOf(replay({ fromTurnId: "turn-x" }))).toBe(10006);
    expect(await codeOf(replay({ threadId: "thread-x" }))).toBe(10007);
  });

  it("[MAP-CONV-05, MAP-METH-10, MAP-METH-11, MAP-ERRS-10] threads have children, roots, a depth limit and counts", async () => {
    const [id, other] = [await conversation({ initialParticipants: [{ id: "bob" }] }), await conversation()];
    const [root, foreign] = [await say(ann, id, "root"), await say(ann, other, "foreign")];
    const { thread } = await ann.createThread({ conversationId: id, rootTurnId: root, subject: "aside" });
    expect(thread).toMatchObject({
      id: expect.stringMatching(/^thread-/),
      subject: "aside",
      rootTurnId: root,
      turnCount: 0,
      participantCount: 0,
      createdBy: "ann",
    });
    expect(await codeOf(ann.createThread({ conversationId: id, rootTurnId: foreign }))).toBe(10006);
    expect(
      await codeOf(ann.createThread({ conversationId: id, rootTurnId: root, parentThreadId: "thread-x" })),
    ).toBe(10007);
    let parent = thread.id;
    for (let depth = 2; depth <= 10; depth++) {
      parent = (await ann.createThread({ conversationId: id, rootTurnId: root, parentThreadId: parent }))
        .thread.id;
    }
    expect(
      await codeOf(ann.createThread({ conversationId: id, rootTurnId: root, parentThreadId: parent })),
    ).toBe(10009);
    expect((await ann.listThreads({ conversationId: id })).threads).toHaveLength(10);
    expect((await ann.listThreads({ conversationId: id, parentThreadId: thread.id })).threads).toHaveLength(
      1,
    );
    expect(await codeOf(ann.listThreads({ conversationId: id, parentThreadId: "thread-x" }))).toBe(10007);
    expect(await codeOf(ann.listThreads({ conversationId: "conv-x" }))).toBe(10000);
    const paged: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await ann.listThreads({
        conversationId: id,
        limit: 4,
        ...(cursor !== undefined && { cursor }),
      });
      paged.push(...page.threads.map((one) => one.id));
      cursor = page.nextCursor;
      if (!page.hasMore) break;
    }
    expect(new Set(paged).size).toBe(10);
    expect(await codeOf(ann.listThreads({ conversationId: id, cursor: "nonsense" }))).toBe(-32602);
    await say(ann, id, "1", { threadId: thread.id });
    await say(ann, id, "hidden", { threadId: thread.id, visibility: { type: "private" } });
    await bob.sendWithMail({ agent: "ann" }, { x: 1 }, id, { threadId: thread.id });
    const countsFor = async (who: AgentConnection) =>
      (await who.listThreads({ conversationId: id })).threads[0];
    expect(await countsFor(ann)).toMatchObject({ turnCount: 3, participantCount: 2 });
    expect(await countsFor(bob)).toMatchObject({ turnCount: 2, participantCount: 2 });
    const secret = await say(ann, id, "secret", { visibility: { type: "private" } });
    const { thread: hidden } = await ann.createThread({ conversationId: id, rootTurnId: secret });
    expect((await bob.listThreads({ conversationId: id })).threads.map((one) => one.id)).not.toContain(
      hidden.id,
    );
    expect(await codeOf(say(bob, id, "x", { threadId: hidden.id }))).toBe(10007);
    expect(await codeOf(bob.createThread({ conversationId: id, rootTurnId: secret }))).toBe(10006);
  });

  it("[MAP-METH-12] summaries are generated once, kept while current, and contain public turns only", async () => {
    const id = await conversation({ subject: "Budget", initialParticipants: [{ id: "bob" }] });
    const client = await map.client();
    const seen = gather(await client.subscribe({ eventTypes: ["mail.summary.generated"] }));
    await say(ann, id, "The budget is tight. We decided to cut travel.");
    await say(bob, id, "Who pays the caterer?");
    await say(ann, id, "walrus", { visibility: { type: "private" } });
    await say(ann, id, "narwhal", { metadata: { internal: true } });
    const include = { keyPoints: true, keyDecisions: true, openQuestions: true };
    const summary = (more: Record<string, unknown> = {}) =>
      ann.getConversationSummary({ conversationId: id, include, ...more } as never);
    const first = await summary();
    expect(first).toMatchObject({
      generated: true,
      keyDecisions: ["We decided to cut travel."],
      openQuestions: ["Who pays the caterer?"],
    });
    expect(JSON.stringify(first)).not.toMatch(/walrus|narwhal/);
    expect(await summary()).toMatchObject({
      generated: false,
      cachedAt: expect.any(Number),
      summary: first.summary,
    });
    await seen.count(1);
    expect(seen.events[0]?.data).toEqual({ conversationId: id, summary: first.summary });
    expect(Object.keys(await bob.getConversationSummary({ conversationId: id })).sort()).toEqual([
      "cachedAt",
      "generated",
      "summary",
    ]);
    expect((await summary({ regenerate: true })).generated).toBe(true);
    await say(bob, id, "One more thing.");
    expect((await summary()).generated).toBe(true);
    await say(ann, id, "private again", { visibility: { type: "private" } });
    expect((await summary()).generated).toBe(false);
    await seen.count(3);
    await ann.inviteToConversation({
      conversationId: id,
      participant: { id: "cyd", role: "worker", permissions: { historyAccess: "from-join" } },
    });
    await say(ann, id, "Only this is new.");
    const narrow = await cyd.getConversationSummary({ conversationId: id });
    expect(narrow.summary).toContain("Only this is new.");
    expect(narrow.summary).not.toContain("budget");
    expect(narrow.generated).toBe(true);
    const second = (await ann.listTurns({ conversationId: id })).turns[1]?.id;
    const part = await summary({ scope: { fromTurnId: second } });
    expect(part.openQuestions).toEqual(["Who pays the caterer?"]);
    expect(part.summary).not.toContain("budget is tight");
    expect(await codeOf(summary({ scope: { threadId: "thread-x" } }))).toBe(10007);
    await seen.count(4);
    expect(seen.events).toHaveLength(4);
  });
});
