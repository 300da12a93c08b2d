/** Looks up the parts of a swarm definition by name: implementations, actions, and the tools that agents are offered. */
import { mailToolsFor, normalizeAddress } from "../../mail/index.js";
import type { Action, AgentFunction, CommTarget, OfferedTool } from "../agent.js";
import type { AgentDefinition, SwarmDefinition } from "../definition.js";

export interface IndexedAgent {
  readonly peers: readonly CommTarget[];
  readonly tools: readonly OfferedTool[];
  /** The tools that remain in the last turn before the step limit. */
  readonly lastTurn: readonly OfferedTool[];
}

export class DefinitionIndex {
  readonly #implementations = new Map<string, AgentFunction>();
  readonly #speculating = new Set<string>();
  #hasRemote = false;
  #hasApprovals = false;
  readonly #actions = new Map<string, Action>();
  readonly #systemActions = new Map<string, Action>();
  readonly #agents = new Map<string, IndexedAgent>();

  /** Replaces everything except the system actions. */
  use(definition: SwarmDefinition): void {
    this.#implementations.clear();
    this.#speculating.clear();
    this.#hasRemote = definition.agents.some(({ implementation }) => implementation.kind === "remote");
    this.#hasApprovals = definition.actions.some(({ approval = false }) => approval !== false);
    this.#actions.clear();
    this.#agents.clear();
    for (const action of definition.actions) this.#actions.set(action.name, action);
    for (const agent of definition.agents) {
      if (agent.implementation.kind === "local") {
        this.#implementations.set(agent.name, agent.implementation.run);
        if (agent.implementation.speculate !== false) this.#speculating.add(agent.name);
      }
      this.#agents.set(agent.name, this.#indexAgent(agent, definition));
    }
  }

  addSystemAction(action: Action): void {
    this.#systemActions.set(action.name, action);
  }

  implementation(agent: string): AgentFunction | undefined {
    return this.#implementations.get(agent);
  }

  /** Whether its turns may start on mail that is not durable yet. */
  speculates(agent: string): boolean {
    return this.#speculating.has(agent);
  }

  /** Whether any agent runs in another process. */
  get hasRemote(): boolean {
    return this.#hasRemote;
  }

  /** Whether calls of any action may need approval. */
  get hasApprovals(): boolean {
    return this.#hasApprovals;
  }

  agent(name: string): IndexedAgent | undefined {
    return this.#agents.get(name);
  }

  action(name: string): Action | undefined {
    return this.#actions.get(name) ?? this.#systemActions.get(name);
  }

  #indexAgent(agent: AgentDefinition, definition: SwarmDefinition): IndexedAgent {
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

function peersOf(agent: AgentDefinition, { name, agents }: SwarmDefinition): CommTarget[] {
  return agent.commTargets.map((target) => {
    const address = normalizeAddress(target, name);
    const peer = agents.find((other) => other.name === address);
    return {
      address,
      ...(peer?.description !== undefined && { description: peer.description }),
      actions: peer?.actions ?? [],
    };
  });
}
