/**
 * Caches the parts of a prompt that the turns of an agent share: system prompt and tools. Both depend only on the
 * swarm's definition.
 */
import type { CommTarget, OfferedTool, Turn } from "../../engine/index.js";
import type { WireFormat } from "./connection.js";
import type { ModelParams } from "./params.js";
import { systemPrompt } from "./prompt.js";
import { type ProviderTools, providerTools } from "./request.js";

export interface PromptPrefix {
  readonly system: string;
  readonly tools: ProviderTools;
  /** Both as text. */
  readonly text: string;
}

export class PromptCache {
  readonly #params: Pick<ModelParams, "system" | "mail_primer">;
  readonly #format: WireFormat;
  readonly #systems = new WeakMap<readonly CommTarget[], { readonly of: string; readonly text: string }>();
  readonly #tools = new WeakMap<
    readonly OfferedTool[],
    { readonly tools: ProviderTools; readonly text: string }
  >();

  constructor(params: Pick<ModelParams, "system" | "mail_primer">, format: WireFormat) {
    this.#params = params;
    this.#format = format;
  }

  of(turn: Pick<Turn, "agent" | "swarm" | "peers" | "allTools">): PromptPrefix {
    const system = this.#system(turn);
    const { tools, text } = this.#toolsOf(turn.allTools);
    return { system, tools, text: `${system}\n${text}` };
  }

  /** One function may implement several agents, so the agent's name is compared as well. */
  #system({ agent, swarm, peers }: Pick<Turn, "agent" | "swarm" | "peers">): string {
    const of = `${agent}@${swarm}`;
    const known = this.#systems.get(peers);
    if (known?.of === of) return known.text;
    const { system, mail_primer: primer } = this.#params;
    const text = systemPrompt({ system, agent, swarm, peers, primer });
    this.#systems.set(peers, { of, text });
    return text;
  }

  #toolsOf(offered: readonly OfferedTool[]) {
    const known = this.#tools.get(offered);
    if (known !== undefined) return known;
    const tools = providerTools(offered, this.#format);
    const made = { tools, text: JSON.stringify(tools) };
    this.#tools.set(offered, made);
    return made;
  }
}
