/** Join requests that a master has to approve. They are repeated when something of the swarm arrives, and hourly. */
import { hasCode, messageOf } from "../../base/index.js";
import type { MeshContext } from "../context.js";
import type { InviteFiles } from "../invite/files.js";

/** Minimum time between two requests: any peer that has the swarm's id can cause one. */
const PAUSE = 30_000;
const ROUND = 3_600_000;

export class PendingJoins {
  readonly #context: MeshContext;
  readonly #files: InviteFiles;
  readonly #join: (inviteUrl: string) => Promise<unknown>;
  readonly #lastAsked = new Map<string, number>();
  #cancel: (() => void) | undefined;

  constructor(context: MeshContext, files: InviteFiles, join: (inviteUrl: string) => Promise<unknown>) {
    this.#context = context;
    this.#files = files;
    this.#join = join;
  }

  start(): void {
    const { clock, random = Math.random } = this.#context.parts;
    this.#cancel = clock.after(ROUND * (0.75 + random() / 2), () => {
      this.start();
      this.askAll();
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  askAll(): void {
    for (const swarmId of this.#files.pending()) this.ask(swarmId);
  }

  /** Returns whether a request for this swarm is pending, and repeats it. */
  ask(swarmId: string): boolean {
    const { now } = this.#context;
    const inviteUrl = this.#files.readPending(swarmId);
    if (inviteUrl === undefined) return false;
    if (now - (this.#lastAsked.get(swarmId) ?? Number.NEGATIVE_INFINITY) < PAUSE) return true;
    this.#lastAsked.set(swarmId, now);
    void this.#repeat(swarmId, inviteUrl);
    return true;
  }

  async #repeat(swarmId: string, inviteUrl: string): Promise<void> {
    const { report } = this.#context.parts;
    try {
      await this.#join(inviteUrl);
      const master = this.#context.view.swarms.get(swarmId)?.master;
      const event = { action: "member_joined", agentId: this.#context.id };
      await this.#context.recordEvent(swarmId, {
        ...event,
        ...(master !== undefined && { initiatedBy: master }),
      });
    } catch (cause) {
      if (hasCode(cause, "pending", "peer_unreachable")) return;
      this.#files.forgetPending(swarmId);
      report({ code: "mesh_join", message: `the request to join was refused: ${messageOf(cause)}`, cause });
    }
  }
}
