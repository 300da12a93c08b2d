/** What agents can find out about other swarms: the tool `discover_swarms` and the reference's interswarm actions. */
import type { Action, ActionContext } from "../engine/agent.js";
import { checkToolArguments } from "../mail/tool-arguments.js";
import type { HttpClient } from "../net/index.js";
import { discover, type FoundSwarm } from "./registry/discovery.js";
import type { SwarmRegistry } from "./registry/registry.js";
import { readSelfDescription } from "./registry/self-description.js";
import type { FederationSettings } from "./settings.js";

const TIME_LIMIT = 10_000;
const LARGEST_ANSWER = 256 * 1024;

/** Decisions E10: what is found is proposed, and an admin decides; unless the policy says otherwise. */
export function discoverSwarmsAction(
  registry: () => SwarmRegistry,
  client: HttpClient,
  policy: FederationSettings["discovery"],
): Action {
  return {
    name: "discover_swarms",
    description: "Asks servers which swarms they know.",
    parameters: { type: "object" },
    check(args) {
      const checked = checkToolArguments("discover_swarms", args);
      return checked.ok ? checked : { ok: false, message: checked.message };
    },
    async run(args, context) {
      const checked = checkToolArguments("discover_swarms", isArguments(args) ? args : {});
      if (!checked.ok) throw new Error(checked.message);
      if (policy === "off") throw new Error("discovery is switched off on this server");
      const lines: string[] = [];
      for (const url of checked.value.discovery_urls.slice(0, 10)) {
        lines.push(await discoverOne(url, registry(), client, policy, context));
      }
      return lines.join("\n");
    },
    // Proposing the same swarms again changes nothing.
    idempotent: true,
  };
}

async function discoverOne(
  url: string,
  registry: SwarmRegistry,
  client: HttpClient,
  policy: FederationSettings["discovery"],
  context: ActionContext,
): Promise<string> {
  let found: readonly FoundSwarm[];
  try {
    found = await discover(client, url, { timeLimit: TIME_LIMIT, signal: context.signal });
  } catch (error) {
    return `${url}: ERROR: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (policy === "register") {
    const added: string[] = [];
    for (const { name, baseUrl } of found) {
      if (registry.has(name)) continue;
      const entry = await registry.register({ name, baseUrl, volatile: true }).catch(() => undefined);
      if (entry !== undefined) added.push(name);
    }
    return `${url}: ${added.length === 0 ? "no new swarms" : `registered, without tokens: ${added.join(", ")}`}`;
  }
  const names = await registry.propose(found);
  return names.length === 0
    ? `${url}: no new swarms`
    : `${url}: proposed; an admin must accept: ${names.join(", ")}`;
}

/** `ping_swarm`, `get_swarm_health` and `get_swarm_registry` (mail.md 8.5). URLs come from agents: all are guarded. */
export function interswarmActions(client: HttpClient): readonly Action[] {
  return [
    urlAction("ping_swarm", "Checks whether a MAIL server answers at a URL.", async (url, context) => {
      const found = readSelfDescription(await get(client, url, context));
      if (found === undefined) throw new Error("this does not look like a MAIL server");
      return "pong";
    }),
    urlAction("get_swarm_health", "Tells the health of a swarm, in its own words.", async (url, context) => {
      const health: unknown = JSON.parse(await get(client, `${url}/health`, context));
      const status = isArguments(health) ? health.status : undefined;
      if (typeof status !== "string") throw new Error("it says nothing about its health");
      return status;
    }),
    urlAction(
      "get_swarm_registry",
      "Lists the swarms that a server knows, one name@url a line.",
      async (url, context) => {
        const found = await discover(client, url, { timeLimit: TIME_LIMIT, signal: context.signal });
        return found.map(({ name, baseUrl }) => `${name}@${baseUrl}`).join("\n");
      },
    ),
  ];
}

function urlAction(
  name: string,
  description: string,
  run: (url: string, context: ActionContext) => Promise<string>,
): Action {
  return {
    name,
    description,
    parameters: {
      type: "object",
      properties: { url: { type: "string", description: "The server's base URL." } },
      required: ["url"],
      additionalProperties: false,
    },
    check: ({ url }) =>
      typeof url === "string" && URL.canParse(url)
        ? { ok: true, value: { url: url.replace(/\/+$/, "") } }
        : { ok: false, message: "url must be a URL" },
    async run(args, context) {
      const url = isArguments(args) ? args.url : undefined;
      if (typeof url !== "string") throw new Error("url must be a URL");
      return run(url, context);
    },
    idempotent: true,
  };
}

async function get(client: HttpClient, url: string, context: ActionContext): Promise<string> {
  const answer = await client.request(url, {
    timeLimit: TIME_LIMIT,
    maxBytes: LARGEST_ANSWER,
    signal: context.signal,
  });
  if (answer.status !== 200) throw new Error(`it answered ${answer.status}`);
  return answer.text();
}

function isArguments(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
