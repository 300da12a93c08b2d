/**
 * What the turns of an agent have in common: its system prompt and its tools. Both follow from what the swarm's
 * definition gives the agent, so they are made once for it and not in every turn.
 */
import type { OfferedTool, Peer, Turn } from "../../engine/agent.js";
import type { WireFormat } from "./connection.js";
import type { ModelParams } from "./params.js";
import { systemPrompt } from "./prompt.js";
import { type ProviderTools, providerTools } from "./request.js";

export interface Standing {
  readonly system: string;
  readonly tools: ProviderTools;
  /** Characters that every prompt has before its first message. */
  readonly size: number;
}

export class Standings {
  readonly #params: Pick<ModelParams, "system" | "mail_primer">;
  readonly #format: WireFormat;
  readonly #systems = new WeakMap<readonly Peer[], { readonly of: string; readonly text: string }>();
  readonly #tools = new WeakMap<
    readonly OfferedTool[],
    { readonly tools: ProviderTools; readonly size: number }
  >();

  constructor(params: Pick<ModelParams, "system" | "mail_primer">, format: WireFormat) {
    this.#params = params;
    this.#format = format;
  }

  of(turn: Pick<Turn, "agent" | "swarm" | "peers" | "tools">): Standing {
    const system = this.#system(turn);
    const { tools, size } = this.#toolsOf(turn.tools);
    return { system, tools, size: system.length + size };
  }

  /** One function may be the mind of several agents, so the name is looked at as well. */
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
    const made = { tools: providerTools(offered, this.#format), size: JSON.stringify(offered).length };
    this.#tools.set(offered, made);
    return made;
  }
}
