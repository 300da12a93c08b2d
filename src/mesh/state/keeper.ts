/** Decisions G6: the tables are the truth; `state.json` is a copy of them, and an import changes them. */

import { replaceFile } from "../../files/durable.js";
import { suggestAlias } from "../alias.js";
import type { MeshCore } from "../core.js";
import { MeshError } from "../errors.js";
import { readStateFile, writeStateFile } from "./file.js";
import { decideImport, type ImportDecision } from "./import.js";

export interface ImportInput {
  readonly mode: "merge" | "replace";
  /** Also when the file is another agent's. */
  readonly force?: boolean;
}

export class StateKeeper {
  readonly #core: MeshCore;
  readonly #file: string | undefined;
  readonly #isForeign: (alias: string) => boolean;

  /** `isForeign` says which names other carriers own. */
  constructor(core: MeshCore, file: string | undefined, isForeign: (alias: string) => boolean) {
    this.#core = core;
    this.#file = file;
    this.#isForeign = isForeign;
  }

  /** A copy for others: when it cannot be written the tables are still the truth. */
  write(): void {
    const { id: agentId, view, parts } = this.#core;
    if (this.#file === undefined) return;
    try {
      replaceFile(this.#file, `${JSON.stringify(writeStateFile({ agentId, view }), null, 2)}\n`);
    } catch (cause) {
      parts.report({ code: "mesh_state_file", message: `${this.#file} could not be written`, cause });
    }
  }

  export(): Readonly<Record<string, unknown>> {
    const { id: agentId, view, now: exportedAt } = this.#core;
    return writeStateFile({ agentId, view, exportedAt });
  }

  /** All or nothing. @throws MeshError when the file is invalid or another agent's. */
  async import(text: string, { mode, force = false }: ImportInput): Promise<ImportDecision> {
    const core = this.#core;
    const file = readStateFile(text);
    if (file.agent_id !== core.id && !force) {
      throw new MeshError("invalid_state_file", `the file is of ${file.agent_id}, this agent is ${core.id}`);
    }
    return core.exclusive(async () => {
      const decision = decideImport(file, mode, {
        view: core.view,
        self: core.self,
        now: core.now,
        aliasFor: (name, taken) => suggestAlias(name, (alias) => taken.has(alias) || this.#isForeign(alias)),
      });
      await core.parts.store.commit({ appends: [], rows: decision.writes });
      await core.load();
      this.write();
      return decision;
    });
  }
}
