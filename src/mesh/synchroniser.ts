/** Asks masters who is in their swarms: rarely, and without anybody waiting for those who do not answer. */
import type { MeshCore } from "./core.js";
import { MeshError } from "./errors.js";
import type { InviteFiles } from "./invite/files.js";
import { syncSwarm } from "./joins.js";

/** At most one question to a master about its members in this time, per swarm. */
const PAUSE = 60_000;

export class Synchroniser {
  readonly #core: MeshCore;
  readonly #invites: InviteFiles;
  readonly #lastAsked = new Map<string, number>();

  constructor(core: MeshCore, invites: InviteFiles) {
    this.#core = core;
    this.#invites = invites;
  }

  /** @throws MeshError when the master cannot be asked. */
  async sync(swarmId: string): Promise<{ readonly conflicts: readonly string[] }> {
    const token = this.#invites.read(swarmId);
    if (token === undefined)
      throw new MeshError("invalid_invite", "the invite of this swarm is not kept here");
    return { conflicts: await syncSwarm(this.#core, swarmId, token) };
  }

  /** Whether the master was asked, and answered. */
  async syncOnce(swarmId: string): Promise<boolean> {
    const { id, now, view, parts } = this.#core;
    const swarm = view.swarms.get(swarmId);
    if (swarm === undefined || swarm.master === id) return false;
    if (now - (this.#lastAsked.get(swarmId) ?? Number.NEGATIVE_INFINITY) < PAUSE) return false;
    this.#lastAsked.set(swarmId, now);
    const token = this.#invites.read(swarmId);
    if (token === undefined) return false;
    try {
      await syncSwarm(this.#core, swarmId, token);
      return true;
    } catch (cause) {
      const message = `the members of ${swarm.name} could not be asked for`;
      parts.report({ code: "mesh_sync", message, cause });
      return false;
    }
  }
}
