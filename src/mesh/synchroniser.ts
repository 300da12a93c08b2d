/** Asks masters who is in their swarms: rarely, and without anybody waiting for those who do not answer. */
import type { MeshCore } from "./core.js";
import { MeshError } from "./errors.js";
import type { InviteFiles } from "./invite/files.js";
import { syncSwarm } from "./joining.js";

/** At most one question to a master about its members in this time, per swarm. */
const PAUSE = 60_000;
/** How often masters are asked that may have announced something once, while we were not there to hear it. */
const ROUND = 3_600_000;

/**
 * `answered`: the master has said who is in. `later`: it was not reached, or was asked too lately to be asked again.
 * `nobody`: there is nobody to ask, or nothing to ask with.
 */
export type Asked = "answered" | "later" | "nobody";

export class Synchroniser {
  readonly #core: MeshCore;
  readonly #invites: InviteFiles;
  readonly #lastAsked = new Map<string, number>();
  /** Swarms whose master did not answer last time; of those the operator knows. */
  readonly #unanswered = new Set<string>();
  /** Masters, by swarm, whose answers show that they are Mailrooms. */
  readonly #remembering = new Map<string, string>();
  readonly #underWay = new Map<string, Promise<boolean>>();
  #cancel: (() => void) | undefined;

  constructor(core: MeshCore, invites: InviteFiles) {
    this.#core = core;
    this.#invites = invites;
  }

  start(): void {
    const { clock, random = Math.random } = this.#core.parts;
    // Not all members of a swarm in the same minute.
    this.#cancel = clock.after(ROUND * (0.75 + random() / 2), () => {
      this.start();
      for (const { id } of this.#withForgetfulMasters()) void this.syncOnce(id);
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  /** Mailrooms keep what they have to announce until it is heard. They are known by their seals, or by their answers. */
  #withForgetfulMasters() {
    const { swarms, sealingKeys } = this.#core.view;
    return [...swarms.values()].filter(
      ({ id, master, members }) =>
        this.#remembering.get(id) !== master && !sealingKeys.has(members.get(master)?.publicKey ?? ""),
    );
  }

  /** @throws MeshError when the master cannot be asked. */
  async sync(swarmId: string): Promise<{ readonly conflicts: readonly string[] }> {
    const token = this.#invites.read(swarmId);
    if (token === undefined)
      throw new MeshError("invalid_invite", "the invite of this swarm is not kept here");
    const { conflicts } = await syncSwarm(this.#core, swarmId, token);
    return { conflicts };
  }

  /** Whether the master was asked, and answered. Who asks meanwhile gets the same answer. */
  syncOnce(swarmId: string): Promise<boolean> {
    const underWay = this.#underWay.get(swarmId);
    if (underWay !== undefined) return underWay;
    if (this.#askedLately(swarmId) || !this.#canAsk(swarmId)) return Promise.resolve(false);
    this.#lastAsked.set(swarmId, this.#core.now);
    const asking = this.#ask(swarmId).finally(() => this.#underWay.delete(swarmId));
    this.#underWay.set(swarmId, asking);
    return asking;
  }

  /** For a message of somebody who is not known here: who joined may write before we have heard of it. */
  async askForMessage(swarmId: string): Promise<Asked> {
    // What the master said a moment ago, to somebody else's message, may not be true of this one any more.
    if (this.#askedLately(swarmId) && !this.#underWay.has(swarmId)) return "later";
    if (!this.#canAsk(swarmId)) return "nobody";
    return (await this.syncOnce(swarmId)) ? "answered" : "later";
  }

  #canAsk(swarmId: string): boolean {
    const swarm = this.#core.view.swarms.get(swarmId);
    return swarm !== undefined && swarm.master !== this.#core.id && this.#invites.read(swarmId) !== undefined;
  }

  #askedLately(swarmId: string): boolean {
    return this.#core.now - (this.#lastAsked.get(swarmId) ?? Number.NEGATIVE_INFINITY) < PAUSE;
  }

  async #ask(swarmId: string): Promise<boolean> {
    const { view, parts } = this.#core;
    const swarm = view.swarms.get(swarmId);
    const token = this.#invites.read(swarmId);
    if (swarm === undefined || token === undefined) return false;
    try {
      const { remembers } = await syncSwarm(this.#core, swarmId, token);
      if (remembers) this.#remembering.set(swarmId, swarm.master);
      this.#unanswered.delete(swarmId);
      return true;
    } catch (cause) {
      const message = `the members of ${swarm.name} could not be asked for`;
      if (!this.#unanswered.has(swarmId)) parts.report({ code: "mesh_sync", message, cause });
      this.#unanswered.add(swarmId);
      return false;
    }
  }
}
