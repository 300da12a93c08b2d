import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  actorOf,
  createdEntry,
  joinedEntry,
  threadEntryOf,
  turnEntryOf,
} from "../../../test/map/builders.js";
import type { ConversationEntry } from "./entries.js";
import { isVisibleInReplay, isVisibleLive } from "./events.js";
import {
  type ConversationView,
  catchUpTurns,
  listThreads,
  listTurns,
  recentTurns,
  replayTurns,
  statsOf,
  visibleThreads,
} from "./queries.js";
import { permissionsFor } from "./roles.js";
import { beginState, type ConversationState, evolve } from "./state.js";
import { HISTORY_ACCESS, PARTICIPANT_ROLES, type Permissions, type Visibility } from "./types.js";
import { viewerAt } from "./visibility.js";

const IDS = ["ann", "bob", "cyd", "dan"] as const;
const id = fc.constantFrom(...IDS);

const permissions: fc.Arbitrary<Permissions> = fc.record({
  canSend: fc.boolean(),
  canObserve: fc.boolean(),
  canInvite: fc.boolean(),
  canRemove: fc.boolean(),
  canCreateThreads: fc.boolean(),
  canSeeInternal: fc.boolean(),
  historyAccess: fc.constantFrom(...HISTORY_ACCESS),
});

const visibility: fc.Arbitrary<Visibility | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.constant({ type: "all" as const }),
  fc.constant({ type: "private" as const }),
  fc.record({
    type: fc.constant("participants" as const),
    ids: fc.array(id, { minLength: 1, maxLength: 2 }),
  }),
  fc.record({
    type: fc.constant("role" as const),
    roles: fc.array(fc.constantFrom(...PARTICIPANT_ROLES), { minLength: 1, maxLength: 2 }),
  }),
);

type Step =
  | {
      readonly kind: "join";
      readonly id: string;
      readonly role: (typeof PARTICIPANT_ROLES)[number];
      readonly permissions: Permissions;
    }
  | { readonly kind: "leave"; readonly id: string }
  | {
      readonly kind: "turn";
      readonly id: string;
      readonly visibility: Visibility | undefined;
      readonly internal: boolean;
      readonly thread: number;
    }
  | { readonly kind: "thread"; readonly root: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("join" as const),
      id,
      role: fc.constantFrom(...PARTICIPANT_ROLES),
      permissions,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave" as const), id }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("turn" as const),
      id,
      visibility,
      internal: fc.boolean(),
      thread: fc.nat(3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("thread" as const), root: fc.nat(5) }) },
);

interface Built {
  readonly state: ConversationState;
  readonly entries: readonly ConversationEntry[];
}

function build(steps: readonly Step[]): Built {
  const first = createdEntry(1);
  const founder = joinedEntry("ann", "initiator");
  const state = beginState(first);
  const entries: ConversationEntry[] = [first];
  const add = (entry: ConversationEntry): void => {
    evolve(state, entry);
    entries.push(entry);
  };
  add(founder);
  const inside = new Set<string>(["ann"]);
  let made = 0;
  for (const next of steps) {
    switch (next.kind) {
      case "join":
        if (inside.has(next.id)) break;
        inside.add(next.id);
        add(joinedEntry(next.id, next.role, next.permissions));
        break;
      case "leave":
        if (!inside.delete(next.id)) break;
        add({ t: "left", at: 1, participantId: next.id, by: next.id });
        break;
      case "turn": {
        const thread = [...state.threads.keys()][next.thread];
        add(
          turnEntryOf(`turn-${made++}`, next.id, {
            internal: next.internal,
            ...(next.visibility !== undefined && { visibility: next.visibility }),
            ...(thread !== undefined && { threadId: thread }),
          }),
        );
        break;
      }
      case "thread": {
        const root = state.turns[next.root];
        if (root !== undefined) add(threadEntryOf(`thread-${made++}`, root.id));
      }
    }
  }
  return { state, entries };
}

/**
 * The visibility rules ([MAP-CONV-07], [MAP-CONV-08], [MAP-CONV-09]) implemented a second time, from the
 * journal alone: walks the entries, tracks members and their permissions, and decides for every turn whether
 * the reader can see it now and whether it was shown live.
 */
function oracle(entries: readonly ConversationEntry[], me: string, observer: boolean) {
  type In = { role: string; permissions: Permissions; since: number };
  let mine: In | undefined;
  const live = new Map<string, boolean>();
  const turns: { number: number; turn: Extract<ConversationEntry, { t: "turn" }>["turn"] }[] = [];
  const roots = new Map<string | undefined, string>();
  const open = (turn: (typeof turns)[number]["turn"], as: In | undefined): boolean => {
    const kind = turn.visibility?.type ?? "all";
    if (as !== undefined && turn.participant === me) return true;
    const root = turns.find((other) => other.turn.id === roots.get(turn.threadId));
    if (root !== undefined && !open(root.turn, as)) return false;
    if (as === undefined) return observer && kind === "all" && turn.metadata.internal !== true;
    if (!as.permissions.canObserve) return false;
    if (turn.metadata.internal === true && !as.permissions.canSeeInternal) return false;
    if (turn.visibility?.type === "participants") return turn.visibility.ids.includes(me);
    if (turn.visibility?.type === "role") return turn.visibility.roles.some((role) => role === as.role);
    return kind === "all";
  };
  for (const [index, entry] of entries.entries()) {
    const number = index + 1;
    if (entry.t === "joined" && entry.participant.id === me) {
      mine = { role: entry.participant.role, permissions: entry.participant.permissions, since: number };
    } else if (entry.t === "left" && entry.participantId === me) {
      mine = undefined;
    } else if (entry.t === "thread") {
      roots.set(entry.thread.id, entry.thread.rootTurnId);
    } else if (entry.t === "turn") {
      turns.push({ number, turn: entry.turn });
      live.set(entry.turn.id, open(entry.turn, mine));
    }
  }
  const now = mine;
  const past = turns.filter(({ number, turn }) => {
    if (!open(turn, now)) return false;
    if (now === undefined || turn.participant === me) return true;
    if (now.permissions.historyAccess === "none") return false;
    return now.permissions.historyAccess === "full" || number > now.since;
  });
  return { member: now, live, visible: past.map(({ turn }) => turn.id) };
}

const scene = fc.record({
  steps: fc.array(step, { maxLength: 40 }),
  me: fc.constantFrom(...IDS, "eve"),
  observer: fc.boolean(),
});

describe("every query shows exactly the turns that the predicate allows", () => {
  const runs = { numRuns: 2000 };
  const setup = ({ steps, me, observer }: { steps: Step[]; me: string; observer: boolean }) => {
    const { state, entries } = build(steps);
    const actor = actorOf(me, { observer });
    const view: ConversationView = {
      state,
      viewer: viewerAt(state, actor, state.number),
      upTo: state.number,
    };
    return { state, entries, actor, view, truth: oracle(entries, me, observer) };
  };
  const ids = (turns: readonly { readonly id: string }[]): string[] => turns.map((turn) => turn.id);

  it("[MAP-OURS-02] in lists, forwards and backwards, page by page", () => {
    fc.assert(
      fc.property(scene, fc.integer({ min: 1, max: 7 }), (given, limit) => {
        const { view, truth } = setup(given);
        for (const order of ["asc", "desc"] as const) {
          const seen: string[] = [];
          for (let cursor: string | undefined; ; ) {
            const page = listTurns(view, { order, limit, ...(cursor !== undefined && { cursor }) });
            seen.push(...ids(page.turns));
            if (page.hasMore) expect(page.turns).toHaveLength(limit);
            cursor = page.turns.at(-1)?.id;
            if (!page.hasMore) break;
          }
          expect(order === "asc" ? seen : seen.toReversed()).toEqual(truth.visible);
        }
      }),
      runs,
    );
  });

  it("in replay, catch-up, recent turns and counts", () => {
    fc.assert(
      fc.property(scene, (given) => {
        const { view, truth } = setup(given);
        const replay = replayTurns(view, { limit: 500 });
        expect(ids(replay.turns)).toEqual(truth.visible);
        expect(replay.missedCount).toBe(truth.visible.length);
        expect(ids(catchUpTurns(view, { limit: 500 }).turns)).toEqual(truth.visible);
        expect(statsOf(view).totalTurns).toBe(truth.visible.length);
        const recent = ids(recentTurns(view, 500)).toReversed();
        expect(recent).toEqual(truth.member?.permissions.historyAccess === "none" ? [] : truth.visible);
      }),
      runs,
    );
  });

  it("in threads and their counts", () => {
    fc.assert(
      fc.property(scene, (given) => {
        const { view, truth, state } = setup(given);
        const visible = new Set(truth.visible);
        const expected = [...state.threads.values()].filter(({ root }) => visible.has(root.id));
        expect([...visibleThreads(view)]).toEqual(expected);
        for (const thread of listThreads(view, { limit: 500 }).threads) {
          const turns = state.turns.filter(
            ({ id: turn, threadId }) => threadId === thread.id && visible.has(turn),
          );
          expect(thread.turnCount).toBe(turns.length);
          expect(thread.participantCount).toBe(new Set(turns.map(({ author }) => author)).size);
        }
      }),
      runs,
    );
  });

  it("in live events, and in replays never more than live", () => {
    fc.assert(
      fc.property(scene, (given) => {
        const { state, entries, actor, truth } = setup(given);
        for (const [index, entry] of entries.entries()) {
          const number = index + 1;
          const live = isVisibleLive(state, actor, number, entry);
          if (entry.t === "turn") expect(live).toBe(truth.live.get(entry.turn.id));
          const again = isVisibleInReplay(state, actor, number, entry, state.number);
          if (again && entry.t === "turn") {
            // An observer's grant does not depend on membership and shows public turns at any time.
            const open =
              given.observer &&
              entry.turn.metadata.internal !== true &&
              (entry.turn.visibility?.type ?? "all") === "all";
            expect(live || open).toBe(true);
            if (truth.member === undefined) expect(given.observer).toBe(true);
          }
        }
      }),
      runs,
    );
  });

  it("an earlier number shows an earlier conversation", () => {
    fc.assert(
      fc.property(scene, fc.nat(40), (given, cut) => {
        const { steps, me, observer } = given;
        const whole = build(steps);
        const upTo = Math.min(2 + cut, whole.state.number);
        const earlier = beginState(createdEntry(1));
        for (const entry of whole.entries.slice(1, upTo)) evolve(earlier, entry);
        const actor = actorOf(me, { observer });
        const asOf: ConversationView = {
          state: whole.state,
          viewer: viewerAt(whole.state, actor, upTo),
          upTo,
        };
        const then: ConversationView = { state: earlier, viewer: viewerAt(earlier, actor, upTo), upTo };
        expect(ids(listTurns(asOf, { limit: 500 }).turns)).toEqual(
          ids(listTurns(then, { limit: 500 }).turns),
        );
        expect(statsOf(asOf)).toEqual(statsOf(then));
      }),
      runs,
    );
  });
});

describe("several ids of one actor", () => {
  it("see what any of them can see", () => {
    const state = beginState(createdEntry(1));
    evolve(state, joinedEntry("ann", "initiator"));
    evolve(state, joinedEntry("bob", "worker", permissionsFor("worker", { canObserve: false })));
    evolve(state, turnEntryOf("turn-1", "ann", { visibility: { type: "participants", ids: ["bob"] } }));
    const view = (...owned: [string, ...string[]]): ConversationView => ({
      state,
      viewer: viewerAt(state, actorOf(owned), state.number),
      upTo: state.number,
    });
    expect(listTurns(view("bob"), {}).turns).toEqual([]);
    expect(listTurns(view("bob", "ann"), {}).turns).toHaveLength(1);
  });
});
