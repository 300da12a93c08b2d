/** The tables are the truth; `state.json` is a copy of them, and an import changes them (decision G6). */

import { MailroomError } from "../../base/index.js";
import { replaceFile } from "../../base/node.js";
import { suggestAlias } from "../alias.js";
import type { MeshContext } from "../context.js";
import { readStateDocument, writeStateDocument } from "./format.js";
import { decideImport, type ImportDecision } from "./import.js";

export interface ImportInput {
  readonly mode: "merge" | "replace";
  /** Accept the file of another agent. */
  readonly force?: boolean;
}

export class StateFile {
  readonly #context: MeshContext;
  readonly #file: string | undefined;
  readonly #isForeign: (alias: string) => boolean;

  /** `isForeign` returns whether another carrier owns a name. */
  constructor(context: MeshContext, file: string | undefined, isForeign: (alias: string) => boolean) {
    this.#context = context;
    this.#file = file;
    this.#isForeign = isForeign;
  }

  /** Writes a copy for other software. On failure the tables remain the truth. */
  write(): void {
    const { id: agentId, view, parts } = this.#context;
    if (this.#file === undefined) return;
    try {
      replaceFile(this.#file, `${JSON.stringify(writeStateDocument({ agentId, view }), null, 2)}\n`);
    } catch (cause) {
      parts.report({ code: "mesh_state_file", message: `${this.#file} could not be written`, cause });
    }
  }

  export(): Readonly<Record<string, unknown>> {
    const { id: agentId, view, now: exportedAt } = this.#context;
    return writeStateDocument({ agentId, view, exportedAt });
  }

  /** Imports all of the state or nothing. @throws MailroomError when the file is invalid or belongs to another agent */
  async import(text: string, { mode, force = false }: ImportInput): Promise<ImportDecision> {
    const context = this.#context;
    const file = readStateDocument(text, this.#context.now);
    if (file.agent_id !== context.id && !force) {
      throw new MailroomError(
        "invalid_state_file",
        `the file belongs to ${file.agent_id}, this agent is ${context.id}`,
      );
    }
    return context.exclusive(async () => {
      const decision = decideImport(file, mode, {
        view: context.view,
        self: context.self,
        now: context.now,
        aliasFor: (name, taken) => suggestAlias(name, (alias) => taken.has(alias) || this.#isForeign(alias)),
      });
      await context.parts.store.commit({ appends: [], rows: decision.writes });
      await context.load();
      this.write();
      return decision;
    });
  }
}
