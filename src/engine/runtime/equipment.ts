/** What the swarm's definition gives the runtime to work with: minds to ask, actions to run, tools to offer. */
import { normaliseAddress } from "../../mail/address.js";
import { mailToolsFor } from "../../mail/tools.js";
import type { Action, AgentFunction, OfferedTool, Peer } from "../agent.js";
import type { AgentDefinition, SwarmDefinition } from "../definition.js";

export interface AgentEquipment {
  readonly peers: readonly Peer[];
  readonly tools: readonly OfferedTool[];
  /** What is left of them in the last turn before the step limit. */
  readonly lastTurn: readonly OfferedTool[];
}

export class Equipment {
  readonly #minds = new Map<string, AgentFunction>();
  readonly #speculating = new Set<string>();
  #hasRemote = false;
  readonly #actions = new Map<string, Action>();
  readonly #systemActions = new Map<string, Action>();
  readonly #agents = new Map<string, AgentEquipment>();

  /** Replaces everything but the system's own actions. */
  equip(definition: SwarmDefinition): void {
    this.#minds.clear();
    this.#speculating.clear();
    this.#hasRemote = definition.agents.some(({ mind }) => mind.kind === "remote");
    this.#actions.clear();
    this.#agents.clear();
    for (const action of definition.actions) this.#actions.set(action.name, action);
    for (const agent of definition.agents) {
      if (agent.mind.kind === "local") {
        this.#minds.set(agent.name, agent.mind.run);
        if (agent.mind.speculate !== false) this.#speculating.add(agent.name);
      }
      this.#agents.set(agent.name, this.#equipmentOf(agent, definition));
    }
  }

  addSystemAction(action: Action): void {
    this.#systemActions.set(action.name, action);
  }

  mind(agent: string): AgentFunction | undefined {
    return this.#minds.get(agent);
  }

  /** Whether its turns may start on mail that is not durable yet. */
  speculates(agent: string): boolean {
    return this.#speculating.has(agent);
  }

  /** Whether any agent lives in another process. */
  get hasRemote(): boolean {
    return this.#hasRemote;
  }

  agent(name: string): AgentEquipment | undefined {
    return this.#agents.get(name);
  }

  action(name: string): Action | undefined {
    return this.#actions.get(name) ?? this.#systemActions.get(name);
  }

  #equipmentOf(agent: AgentDefinition, definition: SwarmDefinition): AgentEquipment {
    const mailTools = mailToolsFor({
      commTargets: agent.commTargets,
      canCompleteTasks: agent.canCompleteTasks,
      enableInterswarm: definition.enableInterswarm && agent.enableInterswarm,
      excludeTools: [...definition.excludeTools, ...agent.excludeTools],
    });
    const actions = agent.actions.flatMap((name) => this.#actions.get(name) ?? []);
    return {
      peers: peersOf(agent, definition),
      tools: [
        ...mailTools,
        ...actions.map(({ name, description, parameters }) => ({ name, description, parameters })),
      ],
      lastTurn: mailTools.filter((tool) => tool.name === "task_complete"),
    };
  }
}

function peersOf(agent: AgentDefinition, { name, agents }: SwarmDefinition): Peer[] {
  return agent.commTargets.map((target) => {
    const address = normaliseAddress(target, name);
    const peer = agents.find((other) => other.name === address);
    return {
      address,
      ...(peer?.description !== undefined && { description: peer.description }),
      actions: peer?.actions ?? [],
    };
  });
}
