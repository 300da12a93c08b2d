/** Asks masters for their member lists: rarely, and without blocking on masters that do not respond. */
import { MailroomError } from "../../base/index.js";
import type { MeshContext } from "../context.js";
import type { InviteFiles } from "../invite/files.js";
import { signInvite } from "../invite/token.js";
import { syncSwarm } from "./client.js";

/** Minimum time between two requests to a master, per swarm. */
const PAUSE = 60_000;
/** Interval for masters that may announce a change only once, possibly while this agent was unreachable. */
const ROUND = 3_600_000;

/**
 * `answered`: the master sent its member list. `later`: it was unreachable, or was asked too recently.
 * `nobody`: this agent is the master, or has no invite to ask with.
 */
export type SyncResult = "answered" | "later" | "nobody";

export class MembershipSync {
  readonly #context: MeshContext;
  readonly #invites: InviteFiles;
  readonly #lastAsked = new Map<string, number>();
  /** Swarms whose master failed to respond last time, so that each failure is reported once. */
  readonly #unanswered = new Set<string>();
  /** Masters, by swarm, whose responses show that they run Mailroom. */
  readonly #remembering = new Map<string, string>();
  readonly #running = new Map<string, Promise<boolean>>();
  /** Requests that wait for the end of the pause. */
  readonly #later = new Map<string, () => void>();
  #cancel: (() => void) | undefined;

  constructor(context: MeshContext, invites: InviteFiles) {
    this.#context = context;
    this.#invites = invites;
  }

  start(): void {
    const { clock, random = Math.random } = this.#context.parts;
    // Spreads the requests of a swarm's members over time.
    this.#cancel = clock.after(ROUND * (0.75 + random() / 2), () => {
      this.start();
      for (const { id } of this.#withForgetfulMasters()) void this.syncOnce(id);
    });
  }

  stop(): void {
    this.#cancel?.();
    for (const cancel of this.#later.values()) cancel();
    this.#later.clear();
  }

  /** Mailroom stores announcements until they are delivered. It is recognized by its seals or by its responses. */
  #withForgetfulMasters() {
    const { swarms, sealingKeys } = this.#context.view;
    return [...swarms.values()].filter(
      ({ id, master, members }) =>
        this.#remembering.get(id) !== master && !sealingKeys.has(members.get(master)?.publicKey ?? ""),
    );
  }

  /** @throws MailroomError when the master cannot be asked */
  async sync(swarmId: string): Promise<{ readonly conflicts: readonly string[] }> {
    const token = this.#token(swarmId);
    if (token === undefined)
      throw new MailroomError("invalid_invite", "the invite of this swarm is not stored here");
    const { conflicts } = await syncSwarm(this.#context, swarmId, token);
    return { conflicts };
  }

  /** Asks the master now, or as soon as the pause after the last request has passed. */
  syncSoon(swarmId: string): void {
    if (this.#later.has(swarmId)) return;
    const { now, parts } = this.#context;
    const wait = Math.max(0, (this.#lastAsked.get(swarmId) ?? 0) + PAUSE - now);
    const cancel = parts.clock.after(wait, () => {
      this.#later.delete(swarmId);
      void this.syncOnce(swarmId);
    });
    this.#later.set(swarmId, cancel);
  }

  /** Returns whether the master responded. Concurrent callers share one request. */
  syncOnce(swarmId: string): Promise<boolean> {
    const running = this.#running.get(swarmId);
    if (running !== undefined) return running;
    if (this.#askedLately(swarmId) || !this.#canAsk(swarmId)) return Promise.resolve(false);
    this.#lastAsked.set(swarmId, this.#context.now);
    const asking = this.#ask(swarmId).finally(() => this.#running.delete(swarmId));
    this.#running.set(swarmId, asking);
    return asking;
  }

  /** For a message from an unknown sender: a new member may write before its announcement arrives. */
  async askForMessage(swarmId: string): Promise<SyncResult> {
    // A response to an earlier message may be older than the sender's join.
    if (this.#askedLately(swarmId) && !this.#running.has(swarmId)) return "later";
    if (!this.#canAsk(swarmId)) return "nobody";
    return (await this.syncOnce(swarmId)) ? "answered" : "later";
  }

  #canAsk(swarmId: string): boolean {
    const swarm = this.#context.view.swarms.get(swarmId);
    return swarm !== undefined && swarm.master !== this.#context.id && this.#token(swarmId) !== undefined;
  }

  /**
   * The invite that this agent joined with. The creator of a swarm has none; masters that run Mailroom need none from a
   * member that proves its key, so that it signs one itself.
   */
  #token(swarmId: string): string | undefined {
    const { view, pair, id, now } = this.#context;
    const kept = this.#invites.read(swarmId);
    const swarm = view.swarms.get(swarmId);
    const master = swarm?.members.get(swarm.master);
    if (kept !== undefined || swarm === undefined || master === undefined) return kept;
    const runsMailroom = swarm.handovers !== undefined || view.sealingKeys.has(master.publicKey);
    if (!runsMailroom) return undefined;
    const issuedAt = Math.floor(now / 1_000);
    return signInvite(
      { swarmId, master: master.agentId, endpoint: master.endpoint, issuedAt, issuer: id },
      pair,
    );
  }

  #askedLately(swarmId: string): boolean {
    return this.#context.now - (this.#lastAsked.get(swarmId) ?? Number.NEGATIVE_INFINITY) < PAUSE;
  }

  async #ask(swarmId: string): Promise<boolean> {
    const { view, parts } = this.#context;
    const swarm = view.swarms.get(swarmId);
    const token = this.#token(swarmId);
    if (swarm === undefined || token === undefined) return false;
    try {
      const { remembers } = await syncSwarm(this.#context, swarmId, token);
      if (remembers) this.#remembering.set(swarmId, swarm.master);
      this.#unanswered.delete(swarmId);
      return true;
    } catch (cause) {
      const message = `the member list of ${swarm.name} could not be fetched`;
      if (!this.#unanswered.has(swarmId)) parts.report({ code: "mesh_sync", message, cause });
      this.#unanswered.add(swarmId);
      return false;
    }
  }
}
