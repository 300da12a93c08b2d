/** The swarm definition in use, and the ones that it replaced until their last action has ended. */
import { messageOf, type Report } from "../../base/index.js";
import type { SwarmDefinition } from "../definition.js";
import type { RuntimeLimits } from "../settings.js";
import { rulesOf, type SwarmRules } from "../task/rules.js";
import type { DefinitionIndex } from "./definition-index.js";

export interface CurrentDefinitionParts {
  readonly limits: RuntimeLimits;
  readonly definitionIndex: DefinitionIndex;
  /** Resolves when all actions that run now have ended. */
  readonly actionsEnded: () => Promise<void>;
  readonly report: Report;
}

export class CurrentDefinition {
  readonly #parts: CurrentDefinitionParts;
  readonly #leaving = new Set<Promise<void>>();
  #definition: SwarmDefinition;
  #rules: SwarmRules;

  constructor(definition: SwarmDefinition, parts: CurrentDefinitionParts) {
    this.#parts = parts;
    this.#definition = definition;
    this.#rules = rulesOf(definition, parts.limits);
    parts.definitionIndex.use(definition);
  }

  get definition(): SwarmDefinition {
    return this.#definition;
  }

  get rules(): SwarmRules {
    return this.#rules;
  }

  replace(definition: SwarmDefinition): void {
    const replaced = this.#definition;
    this.#definition = definition;
    this.#rules = rulesOf(definition, this.#parts.limits);
    this.#parts.definitionIndex.use(definition);
    if (replaced.close !== definition.close) this.release(replaced);
  }

  /** Closes a definition when the actions that run now have ended. */
  release(definition: SwarmDefinition): void {
    const { actionsEnded, report } = this.#parts;
    const leaving = actionsEnded()
      .then(() => definition.close?.())
      .catch((cause: unknown) => report({ code: "close_failed", message: messageOf(cause), cause }))
      .finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  /** Resolves when every released definition is closed. */
  async released(): Promise<void> {
    await Promise.all(this.#leaving);
  }
}
