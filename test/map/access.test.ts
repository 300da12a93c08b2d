/** Random callers, ids, sessions, invitations, removals and reconnections, compared with a small model of access. */
import { expect, it } from "vitest";
import { devAuthenticator } from "../../src/auth/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";
import { AccessModel, type Caller, type Invited, idsOf, LEADER, PLAIN, type Rights } from "./access-model.js";
import { Harness, type RawClient } from "./harness.js";

/** More for a soak run: `ACCESS_RUNS=500`. */
const RUNS = Number(process.env.ACCESS_RUNS ?? 12);
const STEPS = 200;
const PRINCIPALS = ["user:ann", "user:bob", "user:cyd"] as const;
const NAMES = ["name-1", "name-2", "name-3", "name-4", "name-5", "name-6", "name-7"] as const;
const HISTORY = ["none", "from-join", "full"] as const;

interface Connected extends Caller {
  raw: RawClient;
  resumeToken: string;
}

/** Mulberry32. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
}

const wireOf = ({ id, role, rights }: Invited) => ({
  id,
  role,
  permissions: { canSend: rights.send, historyAccess: HISTORY[rights.history] },
});

class World {
  readonly model = new AccessModel();
  readonly callers: Connected[] = [];
  readonly #random: (below: number) => number;
  readonly #store: FullStore;
  readonly #invitations: string[] = [];
  #map: Harness;
  #said = 0;
  /** Steps that the model allowed, by kind, so that the test is not empty. */
  readonly allowed = new Map<string, number>();

  constructor(map: Harness, store: FullStore, random: (below: number) => number) {
    this.#map = map;
    this.#store = store;
    this.#random = random;
  }

  #pick<T>(values: readonly T[]): T {
    const value = values[this.#random(values.length)];
    if (value === undefined) throw new Error("nothing to pick from");
    return value;
  }

  static startOn(store: FullStore): Promise<Harness> {
    return Harness.start({ authenticator: devAuthenticator(), dev: false, store });
  }

  async connect(principal: string, resumeToken?: string): Promise<{ raw: RawClient; answer: Connection }> {
    const raw = await this.#map.raw({ connect: false });
    const answer = await raw.call("map/connect", {
      protocolVersion: 1,
      auth: { method: "bearer", token: principal },
      ...(resumeToken !== undefined && { resumeToken }),
    });
    return { raw, answer: answer as unknown as Connection };
  }

  async newCaller(): Promise<void> {
    const principal = this.#pick(PRINCIPALS);
    const { raw, answer } = await this.connect(principal);
    const caller = { principal, session: answer.sessionId, agents: [], raw, resumeToken: answer.resumeToken };
    this.callers.push(caller);
    this.model.sessionOpened(caller);
  }

  /** The connection is lost, and the session resumed by another one. */
  async reconnect(caller: Connected): Promise<void> {
    caller.raw.socket.terminate();
    const { raw, answer } = await this.connect(caller.principal, caller.resumeToken);
    expect(answer).toMatchObject({ reconnected: true, sessionId: caller.session });
    Object.assign(caller, { raw, resumeToken: answer.resumeToken });
  }

  async restart(): Promise<void> {
    await this.#map.stop({ keepStore: true });
    this.#map = await World.startOn(this.#store);
    this.callers.length = 0;
    for (let n = 0; n < 4; n++) await this.newCaller();
  }

  async stop(): Promise<void> {
    await this.#map.stop();
    expect(this.#map.problems).toEqual([]);
  }

  #anyId(): string {
    const sessions = this.callers.map(({ session }) => session);
    return this.#pick([...NAMES, ...PRINCIPALS, this.#pick(sessions)]);
  }

  #guest(): Invited {
    const role = this.#pick(["worker", "worker", "moderator"] as const);
    const rank = this.#pick([0, 1, 2, 2] as const);
    const rights: Rights = {
      ...(role === "moderator" ? LEADER : PLAIN),
      send: this.#random(3) > 0,
      history: rank,
    };
    return { id: this.#anyId(), role, rights };
  }

  #note(kind: string, allowed: boolean, error: unknown): void {
    expect({ kind, allowed: error === undefined, error }).toEqual({ kind, allowed, error });
    if (allowed) this.allowed.set(kind, (this.allowed.get(kind) ?? 0) + 1);
  }

  /** Ids without an owner must have got an invitation, and no others. */
  #named(caller: Caller, result: Record<string, unknown> | undefined, ids: readonly string[]): void {
    const { invitations = {} } = (result?._meta ?? {}) as { invitations?: Record<string, string> };
    const free = [...new Set(ids)].filter((id) => this.model.isFree(id));
    expect(Object.keys(invitations).toSorted()).toEqual(free.toSorted());
    this.model.named(caller, invitations);
    this.#invitations.push(...Object.values(invitations));
  }

  async step(): Promise<void> {
    const caller = this.#pick(this.callers);
    const { model } = this;
    const ask = (method: string, params: object) => caller.raw.request(method, params);
    const rooms = [...model.rooms.keys()];
    const room = rooms.length === 0 ? undefined : this.#pick(rooms);
    const kind = this.#random(100);
    if (room === undefined || kind < 6) {
      const open = this.#random(3) === 0;
      const guests = Array.from({ length: this.#random(3) }, () => this.#guest());
      const { result, error } = await ask("mail/create", {
        metadata: open ? { joinPolicy: "open" } : {},
        initialParticipants: guests.map(wireOf),
      });
      const allowed = guests.every(({ id }) => !model.isReservedFor(caller, id));
      this.#note("create", allowed, error);
      if (!allowed) return;
      this.#named(
        caller,
        result,
        guests.map(({ id }) => id),
      );
      model.created(caller, String((result?.conversation as { id?: string })?.id), open, guests);
    } else if (kind < 16) {
      const agentId = this.#anyId();
      const invitation = this.#random(3) === 0 ? this.#invitations[this.#random(20)] : undefined;
      const allowed = model.mayRegister(caller, agentId, invitation) && !caller.agents.includes(agentId);
      if (caller.agents.includes(agentId)) return;
      const { error } = await ask("map/agents/register", {
        agentId,
        ...(invitation !== undefined && { invitation }),
      });
      this.#note("register", allowed, error);
      if (allowed) model.registered(caller, agentId, this.callers);
    } else if (kind < 28) {
      const guest = this.#guest();
      const allowed = model.mayInvite(caller, room, guest) && !model.isReservedFor(caller, guest.id, room);
      const { result, error } = await ask("mail/invite", {
        conversationId: room,
        participant: wireOf(guest),
      });
      this.#note("invite", allowed, error);
      if (!allowed) return;
      this.#named(caller, result, [guest.id]);
      model.invited(room, guest);
    } else if (kind < 45) {
      const joining = model.joining(caller, room);
      const { result, error } = await ask("mail/join", { conversationId: room });
      this.#note("join", joining !== undefined, error);
      if (joining === undefined) return;
      expect(result?.participant).toMatchObject({
        id: idsOf(caller)[0],
        role: joining.role,
        permissions: {
          canSend: joining.rights.send,
          canInvite: joining.rights.lead,
          canRemove: joining.rights.lead,
          historyAccess: HISTORY[joining.rights.history],
        },
      });
      model.joined(caller, room);
    } else if (kind < 58) {
      const target = this.#random(3) === 0 ? undefined : this.#anyId();
      const leaving = model.leaving(caller, room, target);
      const { error } = await ask("mail/leave", {
        conversationId: room,
        ...(target !== undefined && { participantId: target }),
      });
      this.#note(target === undefined ? "leave" : "remove", leaving !== undefined, error);
      if (leaving !== undefined) model.left(caller, room, leaving, target !== undefined);
    } else if (kind < 63) {
      const members = [...(model.rooms.get(room)?.members.keys() ?? [])];
      const [participantId, canSend] = [this.#pick([...members, this.#anyId()]), this.#random(2) === 0];
      const { error } = await ask("mailroom/member", {
        conversationId: room,
        participantId,
        permissions: { canSend },
      });
      this.#note("mute", model.muted(caller, room, participantId, canSend), error);
    } else if (kind < 80) {
      const only = [undefined, undefined, [], [this.#anyId(), this.#anyId()]][this.#random(4)];
      const words = `turn ${++this.#said}`;
      const reserved = only?.some((id) => !model.isMember(room, id) && model.isReservedFor(caller, id, room));
      const author = reserved === true ? undefined : model.author(caller, room);
      const visibility =
        only === undefined
          ? undefined
          : only.length === 0
            ? { type: "private" }
            : { type: "participants", ids: only };
      const { result, error } = await ask("mail/turn", {
        conversationId: room,
        contentType: "text",
        content: { text: words },
        ...(visibility !== undefined && { visibility }),
      });
      this.#note("turn", author !== undefined, error);
      if (author === undefined) return;
      expect(result?.turn).toMatchObject({ participant: author });
      this.#named(caller, result, only?.filter((id) => !model.isMember(room, id)) ?? []);
      model.wrote(room, author, words, only);
    } else if (kind < 94) {
      await this.read(caller, room);
    } else if (kind < 97) {
      await this.reconnect(caller);
    } else if (this.callers.length < 8) {
      await this.newCaller();
    } else if (kind === 99) {
      await this.restart();
    }
  }

  async read(caller: Connected, room: string): Promise<void> {
    const readable = this.model.readable(caller, room);
    const { result, error } = await caller.raw.request("mail/turns/list", {
      conversationId: room,
      limit: 500,
    });
    this.#note("read", readable !== undefined, error);
    if (readable === undefined) return;
    const turns = result?.turns as { content: { text: string } }[];
    expect(turns.map(({ content }) => content.text)).toEqual(readable);
    const replayed = await caller.raw.call("mail/replay", { conversationId: room, limit: 500 });
    expect(replayed.missedCount).toBe(readable.length);
  }
}

interface Connection {
  readonly sessionId: string;
  readonly resumeToken: string;
}

it("[MAP-OURS-02, MAP-F-4, MAP-F-5, MAP-F-6] no caller reads or writes what the model does not allow", async () => {
  const allowed = new Map<string, number>();
  for (let seed = 1; seed <= RUNS; seed++) {
    const store = await openStore({ path: ":memory:" });
    const world = new World(await World.startOn(store), store, randomFrom(seed));
    let step = 0;
    try {
      for (let n = 0; n < 4; n++) await world.newCaller();
      for (; step < STEPS; step++) await world.step();
      for (const caller of world.callers) {
        for (const room of world.model.rooms.keys()) await world.read(caller, room);
      }
    } catch (error) {
      throw new Error(`seed ${seed}, step ${step}`, { cause: error });
    } finally {
      await world.stop();
    }
    for (const [kind, count] of world.allowed) allowed.set(kind, (allowed.get(kind) ?? 0) + count);
  }
  for (const kind of ["create", "register", "invite", "join", "leave", "remove", "mute", "turn", "read"]) {
    expect([kind, (allowed.get(kind) ?? 0) > RUNS]).toEqual([kind, true]);
  }
});
