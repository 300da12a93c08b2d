/** The agent card: what others learn about the swarm before they speak to it. */
import type { SwarmDefinition } from "../engine/definition.js";
import { A2A_PROTOCOL_VERSION, AgentCard } from "./sdk.js";

export interface CardOptions {
  /** Where JSON-RPC is served. Never guessed from the address that the server listens on (decisions D10). */
  readonly url: string;
}

export function cardOf(swarm: SwarmDefinition, { url }: CardOptions): AgentCard {
  const description = swarm.description === "" ? `The swarm '${swarm.name}' of agents.` : swarm.description;
  return {
    name: swarm.name,
    description,
    version: swarm.version,
    supportedInterfaces: [
      { url, protocolBinding: "JSONRPC", protocolVersion: A2A_PROTOCOL_VERSION, tenant: "" },
    ],
    provider: undefined,
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {
      bearer: {
        scheme: {
          $case: "httpAuthSecurityScheme",
          value: { scheme: "Bearer", bearerFormat: "", description: "A token of a user or an admin." },
        },
      },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain"],
    skills: [
      {
        id: swarm.name,
        name: swarm.name,
        description,
        tags: [...swarm.keywords],
        examples: [],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
}

/** The card as it stands at `/.well-known/agent-card.json`. */
export function cardText(swarm: SwarmDefinition, options: CardOptions): string {
  return JSON.stringify(AgentCard.toJSON(cardOf(swarm, options)));
}
