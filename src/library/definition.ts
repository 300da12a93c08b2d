/**
 * The definition in force: the configured one, or one that an admin loaded over it. A loaded definition survives restarts
 * until the configured one changes (decision D5).
 */
import { MailroomError, messageOf, type Report } from "../base/index.js";
import type { SwarmDefinition } from "../engine/index.js";
import type { RowWrite } from "../journal/index.js";
import type { HttpStore, LoadedSwarmPut, LoadedSwarmRemove } from "../store/index.js";
import type { LoadedSwarm, LoadOptions } from "../swarm/index.js";
import type { Mailroom } from "./mailroom.js";
import { loadSwarmsFromText } from "./swarms.js";

/** Text from a caller does not make the server import code, unless it is configured to. */
const CLOSED: LoadOptions = { modules: false };

export interface DefinitionParts {
  readonly mailroom: Mailroom;
  readonly store: Pick<HttpStore, "loadedSwarm">;
  /** How loaded definitions are resolved. Default: module references are rejected. */
  readonly loading?: LoadOptions | undefined;
  readonly report: Report;
}

export class DefinitionInForce {
  readonly #parts: DefinitionParts;
  /** Hash of the configured definition. */
  #configured: string;

  constructor(parts: DefinitionParts) {
    this.#parts = parts;
    this.#configured = parts.mailroom.swarm.hash;
  }

  /**
   * Checks a swarm, stores it and puts it in force. `rows` are committed with it.
   * @throws MailroomError `bad_swarm_file` when it is not valid
   * @throws MailroomError `swarm_name_differs`
   */
  async replace(text: string, rows: readonly RowWrite[]): Promise<void> {
    const { mailroom } = this.#parts;
    const { definition } = await this.#read(text);
    try {
      if (definition.name !== mailroom.swarm.name) {
        throw new MailroomError(
          "swarm_name_differs",
          `this server runs the swarm '${mailroom.swarm.name}': '${definition.name}' cannot replace it`,
        );
      }
      const row: LoadedSwarmPut = {
        kind: "http.swarm.put",
        loaded: { swarm: definition.name, text, replaces: this.#configured },
      };
      await mailroom.store.commit({ appends: [], rows: [row, ...rows] });
    } catch (error) {
      // Its MCP servers are already connected.
      await definition.close?.();
      throw error;
    }
    mailroom.runtime.redefine(definition);
  }

  /** Puts a changed configured definition in force, also in place of a loaded one. */
  async use(definition: SwarmDefinition): Promise<void> {
    const { mailroom, store } = this.#parts;
    if ((await store.loadedSwarm(definition.name)) !== undefined) await this.#forget(definition.name);
    this.#configured = definition.hash;
    mailroom.runtime.redefine(definition);
  }

  /** Puts a definition that was loaded before the restart in force again, unless the configured one has changed. */
  async restore(): Promise<void> {
    const { mailroom, store, report } = this.#parts;
    const loaded = await store.loadedSwarm(mailroom.swarm.name);
    if (loaded === undefined) return;
    if (loaded.replaces !== this.#configured) return this.#forget(loaded.swarm);
    try {
      mailroom.runtime.redefine((await this.#read(loaded.text)).definition);
    } catch (cause) {
      // Settings may have become stricter. The configured swarm runs, and the text is kept for its author.
      const message = `the swarm loaded over HTTP is no longer valid: ${messageOf(cause)}`;
      report({ code: "bad_swarm_file", message, cause });
    }
  }

  async #forget(swarm: string): Promise<void> {
    const row: LoadedSwarmRemove = { kind: "http.swarm.remove", swarm };
    await this.#parts.mailroom.store.commit({ appends: [], rows: [row] });
  }

  async #read(text: string): Promise<LoadedSwarm> {
    // A swarm file is a list of swarms; the loaded text is one of them.
    const list = /^\s*\{(?!\s*"(?:\$schema|swarms)"\s*:)/.test(text) ? `[${text}]` : text;
    const swarms = await loadSwarmsFromText(list, { ...CLOSED, ...this.#parts.loading, source: "json" });
    const [only, ...others] = swarms;
    if (only === undefined || others.length > 0) {
      await Promise.all(swarms.map(({ definition }) => definition.close?.()));
      throw new MailroomError("bad_request", `json must contain one swarm, not ${swarms.length}`, {
        details: { field: "json" },
      });
    }
    return only;
  }
}
