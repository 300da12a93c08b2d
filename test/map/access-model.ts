/**
 * Who may do what in conversations, written a second time, as simply as possible, and without the server's code. Every
 * question is answered from what has happened so far.
 */

export interface Rights {
  readonly send: boolean;
  /** Invite and remove others. */
  readonly lead: boolean;
  /** 0: none, 1: from the join on, 2: all. */
  readonly history: 0 | 1 | 2;
}
export type Role = "initiator" | "moderator" | "assistant" | "worker";

export const LEADER: Rights = { send: true, lead: true, history: 2 };
export const PLAIN: Rights = { send: true, lead: false, history: 2 };

interface Period {
  readonly from: number;
  to?: number;
  readonly role: Role;
  rights: Rights;
  /** Joined by itself. */
  readonly own: boolean;
  readonly beside?: string | undefined;
  removed?: boolean;
}

interface Said {
  readonly at: number;
  readonly author: string;
  readonly words: string;
  /** Absent: everybody; empty: its author only. */
  readonly only?: readonly string[];
}

interface Room {
  readonly open: boolean;
  readonly members: Map<string, Period[]>;
  readonly said: Said[];
  readonly addressed: Map<string, string>;
}

/** One connection: its caller, its session, and its agents in the order of registration. */
export interface Caller {
  readonly principal: string;
  readonly session: string;
  readonly agents: string[];
}

export const idsOf = ({ principal, session, agents }: Caller): string[] => [
  agents[0] ?? principal,
  principal,
  session,
  ...agents,
];

const lesser = (a: Rights, b: Rights): Rights => ({
  send: a.send && b.send,
  lead: a.lead && b.lead,
  history: a.history < b.history ? a.history : b.history,
});

export class AccessModel {
  readonly rooms = new Map<string, Room>();
  /** Owners of ids; those that are only reserved have an invitation. */
  readonly #owners = new Map<string, { principal: string; invitation?: string | undefined }>();
  #now = 0;

  /** A session belongs to its caller permanently. */
  sessionOpened({ session, principal }: Caller): void {
    this.#owners.set(session, { principal });
  }

  mayRegister({ principal }: Caller, id: string, invitation: string | undefined): boolean {
    if (!/^name-/.test(id)) return false;
    const owner = this.#owners.get(id);
    if (owner === undefined || owner.principal === principal) return true;
    return owner.invitation !== undefined && owner.invitation === invitation;
  }

  registered(caller: Caller, id: string, everybody: readonly Caller[]): void {
    this.#owners.set(id, { principal: caller.principal });
    for (const { agents } of everybody) if (agents.includes(id)) agents.splice(agents.indexOf(id), 1);
    caller.agents.push(id);
  }

  /** Ids without an owner are kept for the caller that named them. */
  named({ principal }: Caller, invitations: Readonly<Record<string, string>>): void {
    for (const [id, invitation] of Object.entries(invitations)) {
      if (!this.isFree(id)) throw new Error(`${id} was not free`);
      this.#owners.set(id, { principal, invitation });
    }
  }

  /** Reserved by another caller, and not named in the room before: its guest would be let in. */
  isReservedFor(caller: Caller, id: string, roomId?: string): boolean {
    const owner = this.#owners.get(id);
    if (owner?.invitation === undefined || owner.principal === caller.principal) return false;
    const room = roomId === undefined ? undefined : this.#room(roomId);
    return room?.members.has(id) !== true && room?.addressed.has(id) !== true;
  }

  isFree(id: string): boolean {
    return /^name-/.test(id) && !this.#owners.has(id);
  }

  #ownerOf(id: string): string | undefined {
    if (id.startsWith("user:")) return id;
    const owner = this.#owners.get(id);
    return owner?.invitation === undefined ? owner?.principal : undefined;
  }

  created(caller: Caller, id: string, open: boolean, others: readonly Invited[]): void {
    const room: Room = { open, members: new Map(), said: [], addressed: new Map() };
    this.rooms.set(id, room);
    const [creator = ""] = idsOf(caller);
    this.#enter(room, creator, { role: "initiator", rights: LEADER, own: true });
    for (const { id: other, role, rights } of others) {
      if (!room.members.has(other)) this.#enter(room, other, { role, rights, own: false });
    }
  }

  mayInvite(caller: Caller, roomId: string, { id, role, rights }: Invited): boolean {
    const room = this.#room(roomId);
    const inviter = this.#membershipsOf(room, caller)[0]?.period;
    if (inviter === undefined || !inviter.rights.lead || this.#current(room, id) !== undefined) return false;
    if (role === "moderator" && inviter.role !== "initiator" && inviter.role !== "moderator") return false;
    return JSON.stringify(lesser(inviter.rights, rights)) === JSON.stringify(rights);
  }

  invited(roomId: string, { id, role, rights }: Invited): void {
    this.#enter(this.#room(roomId), id, { role, rights, own: false });
  }

  /** The rights and the role that a caller gets by joining. Undefined: it may not. */
  joining(caller: Caller, roomId: string): { readonly role: Role; readonly rights: Rights } | undefined {
    return this.#joining(caller, this.#room(roomId));
  }

  joined(caller: Caller, roomId: string): void {
    const room = this.#room(roomId);
    const joining = this.#joining(caller, room);
    const [id = ""] = idsOf(caller);
    if (joining !== undefined) this.#enter(room, id, { ...joining, own: true });
  }

  #joining(
    caller: Caller,
    room: Room,
  ): { readonly role: Role; readonly rights: Rights; readonly beside?: string } | undefined {
    const [acting = ""] = idsOf(caller);
    if (this.#membershipsOf(room, caller).length > 0) return undefined;
    const own = [...room.members].filter(
      ([id]) => idsOf(caller).includes(id) || this.#ownerOf(id) === caller.principal,
    );
    const periods = own.flatMap(([id, all]) => all.map((period) => ({ id, period })));
    const removed = Math.max(0, ...periods.map(({ period }) => (period.removed ? (period.to ?? 0) : 0)));
    const granted = Math.max(0, ...periods.map(({ period }) => (period.own ? 0 : period.from)));
    const former = room.members.get(acting)?.at(-1);
    if (removed > granted || former?.removed === true) return undefined;
    const least = own.map(([, all]) => all.at(-1)?.rights ?? PLAIN).reduce(lesser, LEADER);
    if (former !== undefined) return { role: former.role, rights: least };
    const latest = periods.sort((a, b) => a.period.from - b.period.from).at(-1);
    if (latest !== undefined) {
      const { role } = latest.period;
      const leading = role === "initiator" || role === "moderator";
      return { role: leading ? "assistant" : role, rights: lesser(least, PLAIN), beside: latest.id };
    }
    if (room.open) return { role: "assistant", rights: PLAIN };
    const host = idsOf(caller).flatMap((id) => room.addressed.get(id) ?? [])[0];
    const rights = host === undefined ? undefined : room.members.get(host)?.at(-1)?.rights;
    return rights === undefined ? undefined : { role: "assistant", rights: lesser(rights, PLAIN) };
  }

  /** The ids that leave when a caller removes `target`, or leaves. Undefined: it may not. */
  leaving(caller: Caller, roomId: string, target?: string): readonly string[] | undefined {
    const room = this.#room(roomId);
    const memberships = this.#membershipsOf(room, caller);
    const acting = memberships[0];
    if (acting === undefined) return undefined;
    if (target === undefined) return [acting.id];
    if (memberships.some(({ id }) => id === target)) return [target];
    if (!acting.period.rights.lead) return undefined;
    const going = this.#together(room, target);
    const initiator = going.some((id) => this.#current(room, id)?.role === "initiator");
    return going.length === 0 || initiator ? undefined : going;
  }

  /** The id, all ids of the caller if it is the caller's own, and those that joined beside them. */
  #together(room: Room, target: string): readonly string[] {
    const inside = [...room.members.keys()].filter((id) => this.#current(room, id) !== undefined);
    const found = new Set(
      inside.filter((id) => id === target || (target.startsWith("user:") && this.#ownerOf(id) === target)),
    );
    for (const _ of inside) {
      for (const id of inside) if (found.has(this.#current(room, id)?.beside ?? "")) found.add(id);
    }
    return [...found];
  }

  /** Mutes a member, or lets it write again, with the ids that go with it. False: the caller may not. */
  muted(caller: Caller, roomId: string, target: string, send: boolean): boolean {
    const room = this.#room(roomId);
    const leader = this.#membershipsOf(room, caller)[0]?.period;
    const member = this.#current(room, target);
    if (leader === undefined || member === undefined || member.role === "initiator") return false;
    if (leader.role !== "initiator" && leader.role !== "moderator") return false;
    const changed = this.#together(room, target).flatMap((id) => {
      const period = this.#current(room, id);
      return period === undefined || period.role === "initiator" ? [] : [period];
    });
    // A leader grants only what it has, and the permissions that stay are granted again.
    const granted = changed.map(({ rights }) => ({ ...rights, send }));
    if (granted.some((rights) => JSON.stringify(lesser(leader.rights, rights)) !== JSON.stringify(rights)))
      return false;
    for (const period of changed) period.rights = { ...period.rights, send };
    return true;
  }

  left(caller: Caller, roomId: string, ids: readonly string[], removed: boolean): void {
    const room = this.#room(roomId);
    const own = this.#membershipsOf(room, caller).map(({ id }) => id);
    for (const id of ids) {
      const period = this.#current(room, id);
      if (period === undefined) continue;
      period.to = ++this.#now;
      period.removed = removed && !own.includes(id);
    }
  }

  /** The id under which a caller may write. */
  author(caller: Caller, roomId: string): string | undefined {
    const membership = this.#membershipsOf(this.#room(roomId), caller)[0];
    return membership?.period.rights.send === true ? membership.id : undefined;
  }

  wrote(roomId: string, author: string, words: string, only?: readonly string[]): void {
    const room = this.#room(roomId);
    room.said.push({ at: ++this.#now, author, words, ...(only !== undefined && { only }) });
    for (const id of only ?? []) if (this.#current(room, id) === undefined) room.addressed.set(id, author);
  }

  /** What a caller may read. Undefined: nothing, and the server says so. */
  readable(caller: Caller, roomId: string): readonly string[] | undefined {
    const room = this.#room(roomId);
    const memberships = this.#membershipsOf(room, caller);
    if (memberships.every(({ period }) => period.rights.history === 0)) return undefined;
    const ids = idsOf(caller);
    return room.said
      .filter(({ at, author, only }) => {
        if (ids.includes(author)) return true;
        if (only !== undefined && !only.some((id) => ids.includes(id))) return false;
        return memberships.some(
          ({ period: { rights, from } }) => rights.history === 2 || (rights.history === 1 && at > from),
        );
      })
      .map(({ words }) => words);
  }

  isMember(roomId: string, id: string): boolean {
    return this.#current(this.#room(roomId), id) !== undefined;
  }

  #membershipsOf(room: Room, caller: Caller): { readonly id: string; readonly period: Period }[] {
    return [...new Set(idsOf(caller))].flatMap((id) => {
      const period = this.#current(room, id);
      return period === undefined ? [] : [{ id, period }];
    });
  }

  #current(room: Room, id: string): Period | undefined {
    const period = room.members.get(id)?.at(-1);
    return period?.to === undefined ? period : undefined;
  }

  #enter(room: Room, id: string, period: Omit<Period, "from">): void {
    room.addressed.delete(id);
    room.members.set(id, [...(room.members.get(id) ?? []), { ...period, from: ++this.#now }]);
  }

  #room(id: string): Room {
    const room = this.rooms.get(id);
    if (room === undefined) throw new Error(`there is no conversation ${id}`);
    return room;
  }
}

export interface Invited {
  readonly id: string;
  readonly role: Exclude<Role, "initiator">;
  readonly rights: Rights;
}
