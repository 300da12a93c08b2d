/** The agent card: the public description of the swarm. */

import { isRecord } from "../../base/index.js";
import type { SwarmDefinition } from "../../engine/index.js";
import { A2A_LEGACY_PROTOCOL_VERSION, A2A_PROTOCOL_VERSION, AgentCard } from "./sdk.js";

export interface CardOptions {
  /** URL of the JSON-RPC endpoint. Configured, never derived from the listening address (decision D10). */
  readonly url: string;
}

export function cardOf(swarm: SwarmDefinition, { url }: CardOptions): AgentCard {
  const description = swarm.description === "" ? `The swarm '${swarm.name}' of agents.` : swarm.description;
  return {
    name: swarm.name,
    description,
    version: swarm.version,
    supportedInterfaces: [A2A_PROTOCOL_VERSION, A2A_LEGACY_PROTOCOL_VERSION].map((protocolVersion) => ({
      url,
      protocolBinding: "JSONRPC",
      protocolVersion,
      tenant: "",
    })),
    provider: undefined,
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {
      bearer: {
        scheme: {
          $case: "httpAuthSecurityScheme",
          value: { scheme: "Bearer", bearerFormat: "", description: "Token of a user or admin." },
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

/**
 * The card that is served at `/.well-known/agent-card.json`.
 * @param version of the protocol that the reader named. Readers of version 0.3 name none.
 */
export function cardText(swarm: SwarmDefinition, options: CardOptions, version?: string): string {
  const card = AgentCard.toJSON(cardOf(swarm, options));
  const isOld = version === undefined || version.startsWith("0.");
  return JSON.stringify(isOld ? asLegacyCard(card, options) : card);
}

/** The fields of version 0.3, with the interfaces of both versions. */
function asLegacyCard(card: unknown, { url }: CardOptions): object {
  const { securityRequirements: _newer, ...rest } = isRecord(card) ? card : {};
  return {
    ...rest,
    protocolVersion: LEGACY_CARD_VERSION,
    url,
    preferredTransport: "JSONRPC",
    securitySchemes: { bearer: { type: "http", scheme: "Bearer", description: "Token of a user or admin." } },
    security: [{ bearer: [] }],
    supportsAuthenticatedExtendedCard: false,
  };
}

const LEGACY_CARD_VERSION = "0.3.0";
