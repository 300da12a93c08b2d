/** MCP and A2A on the server's listener, and A2A agents as a way out (decisions H2). */
import type { IncomingMessage } from "node:http";
import {
  A2aCarrier,
  type A2aCarrierOptions,
  type A2aPeer,
  type A2aStore,
  cardText,
  createA2aHttpDoor,
} from "../../a2a/index.js";
import type { Principal } from "../../auth/index.js";
import type { Settings } from "../../config/index.js";
import { HttpError, type Mount, PUBLIC, type RawRoute } from "../../http/index.js";
import { systemClock, systemIds } from "../../library/clock.js";
import type { Mailroom } from "../../library/mailroom.js";
import { checkSwarmName } from "../../mail/address.js";
import { createMcpHttpDoor, McpAccessError, McpDoor } from "../../mcp/index.js";
import { createFetch, createGuard, createHttpClient } from "../../net/index.js";
import { CliError, EXIT } from "../exit.js";
import { A2A_OPERATION, CARD_DESCRIPTION, MCP_OPERATION } from "./agent-routes.js";

const A2A_PATH = "/a2a";
const CARD_PATH = "/.well-known/agent-card.json";

/** Bytes of an A2A agent's answer. */
const LARGEST_ANSWER = 4 * 1024 * 1024;
/** A2A agents may answer only when they are done. */
const ANSWER_TIME = 900_000;

export interface AgentDoors {
  readonly mounts: readonly Mount[];
  readonly routes: readonly RawRoute[];
}

export function openAgentDoors(
  settings: Settings,
  mailroom: Mailroom,
  store: A2aStore,
  onError: (error: Error) => void,
): AgentDoors {
  const a2a = settings.a2a.enabled ? a2aDoor(settings, mailroom, store, onError) : undefined;
  return {
    mounts: [
      ...(settings.mcp.enabled ? [mcpMount(settings, mailroom, onError)] : []),
      ...(a2a === undefined ? [] : [a2a.mount]),
    ],
    routes: a2a === undefined ? [] : [a2a.card],
  };
}

function mcpMount(
  { server: { settings } }: Settings,
  mailroom: Mailroom,
  onError: (error: Error) => void,
): Mount {
  const door = new McpDoor(mailroom, { strictIds: settings.strictIds, onError });
  const http = createMcpHttpDoor(door, onError);
  return {
    path: "/mcp",
    operations: [MCP_OPERATION],
    headers: {
      sent: ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"],
      read: ["mcp-session-id"],
    },
    roles: ["user", "admin", "member"],
    admit: (caller) => admitToMcp(door, caller),
    handle: ({ request, response, caller, body }) => http.handle(request, response, caller, body),
    close: () => http.close(),
  };
}

function admitToMcp(door: McpDoor, caller: Principal): void {
  try {
    door.check(caller);
  } catch (error) {
    if (error instanceof McpAccessError) throw new HttpError("forbidden", error.message, { cause: error });
    throw error;
  }
}

function a2aDoor(settings: Settings, mailroom: Mailroom, store: A2aStore, onError: (error: Error) => void) {
  const baseUrl = (host: string | undefined) => baseUrlOf(settings, host);
  const door = createA2aHttpDoor({
    mailroom,
    state: store.a2a,
    url: ({ headers }: IncomingMessage) => `${baseUrl(headers.host) ?? ""}${A2A_PATH}`,
    strictIds: settings.server.settings.strictIds,
    onError,
  });
  const mount: Mount = {
    path: A2A_PATH,
    operations: [A2A_OPERATION],
    headers: { sent: ["a2a-version", "a2a-extensions"], read: [] },
    roles: ["user", "admin"],
    handle: (call) => door.handle(call),
    close: () => door.close(),
  };
  const card: RawRoute = {
    ...CARD_DESCRIPTION,
    method: "GET",
    path: CARD_PATH,
    access: PUBLIC,
    async handle({ headers }) {
      const url = baseUrl(headers.host);
      if (url === undefined) {
        const detail = "the card names a public address: set public_url in the section [server]";
        throw new HttpError("not_found", detail);
      }
      return {
        status: 200,
        headers: { "content-type": "application/json", "cache-control": "public, max-age=300" },
        body: cardText(mailroom.swarm, { url: `${url}${A2A_PATH}` }),
      };
    },
  };
  return { mount, card };
}

/** Decisions D10: configured, never guessed. In development only names of this machine get here. */
function baseUrlOf({ server }: Settings, host: string | undefined): string | undefined {
  if (server.publicUrl !== undefined) return server.publicUrl.replace(/\/+$/, "");
  if (!server.dev || host === undefined) return undefined;
  return `${server.tls.cert === undefined ? "http" : "https"}://${host}`;
}

export interface A2aCarrierParts {
  readonly store: A2aStore;
  readonly env: NodeJS.ProcessEnv;
  readonly isNameTaken: (name: string) => boolean;
  readonly report: A2aCarrierOptions["report"];
}

/** The way to the A2A agents of the configuration. @throws CliError when an alias cannot be one */
export function openA2aCarrier(
  { a2a }: Settings,
  { store, env, isNameTaken, report }: A2aCarrierParts,
): A2aCarrier | undefined {
  const agents = Object.entries(a2a.agents);
  if (agents.length === 0) return undefined;
  const client = createHttpClient({
    guard: createGuard({ allow: a2a.allow }),
    userAgent: "mailroom-a2a",
    clock: systemClock,
  });
  return new A2aCarrier({
    agents: Object.fromEntries(
      agents.map(([alias, agent]) => [alias, peerOf(alias, agent, env, isNameTaken)]),
    ),
    fetch: createFetch(client, { maxBytes: LARGEST_ANSWER }),
    clock: systemClock,
    ids: systemIds,
    store,
    report,
    deliveryTime: a2a.deliveryTimeout,
    replyTimeout: ANSWER_TIME,
  });
}

function peerOf(
  alias: string,
  { url, token }: { readonly url: string; readonly token?: string },
  env: NodeJS.ProcessEnv,
  isNameTaken: (name: string) => boolean,
): A2aPeer {
  const wrong =
    checkSwarmName(alias) ?? (isNameTaken(alias) ? "another swarm has this name already" : undefined);
  if (wrong !== undefined) throw badAgent(`a2a.agents.${alias}: ${wrong}`);
  const variable = token === undefined ? undefined : /^\$\{(\w+)\}$/.exec(token)?.[1];
  const secret = variable === undefined ? token : env[variable];
  if (variable !== undefined && (secret === undefined || secret === ""))
    throw badAgent(
      `a2a.agents.${alias}.token refers to the environment variable ${variable}, which is not set`,
    );
  return { url, ...(secret !== undefined && { token: secret }) };
}

function badAgent(message: string): CliError {
  return new CliError("bad_config", message, { exit: EXIT.usage });
}
