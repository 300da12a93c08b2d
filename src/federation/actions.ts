/** The tool `discover_swarms`. */
import { messageOf } from "../base/index.js";
import type { Action, ActionContext } from "../engine/index.js";
import { checkToolArguments } from "../mail/index.js";
import type { Guard, HttpClient } from "../net/index.js";
import { discover, type FoundSwarm } from "./registry/discovery.js";
import type { SwarmRegistry } from "./registry/registry.js";
import type { FederationSettings } from "./settings.js";

const TIME_LIMIT = 10_000;
/** Every registered swarm is health-checked, so a remote list must not grow the registry without limit. */
const MOST_REGISTERED = 1_000;

export interface DiscoveryParts {
  readonly registry: SwarmRegistry;
  readonly client: HttpClient;
  /** For untrusted URLs. */
  readonly guard: Guard;
  readonly policy: FederationSettings["discovery"];
}

/** Proposes the swarms it finds for an admin to accept, unless the policy says otherwise (decision E10). */
export function discoverSwarmsAction(parts: DiscoveryParts): Action {
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
      if (parts.policy === "off") throw new Error("discovery is switched off on this server");
      const lines: string[] = [];
      for (const url of checked.value.discovery_urls.slice(0, 10)) {
        context.signal.throwIfAborted();
        lines.push(await discoverOne(url, parts, context));
      }
      return lines.join("\n");
    },
    // Proposing the same swarms again changes nothing.
    idempotent: true,
  };
}

async function discoverOne(
  url: string,
  { registry, client, guard, policy }: DiscoveryParts,
  context: ActionContext,
): Promise<string> {
  let found: readonly FoundSwarm[];
  try {
    found = await discover(client, url, { timeLimit: TIME_LIMIT, signal: context.signal });
  } catch (error) {
    return `${url}: ERROR: ${messageOf(error)}`;
  }
  if (policy === "register") {
    const added: string[] = [];
    let full = false;
    for (const { name, baseUrl } of found) {
      context.signal.throwIfAborted();
      // No admin has checked this swarm, so the untrusted guard applies to its URL.
      if (registry.has(name) || guard.checkUrl(baseUrl) !== undefined) continue;
      full = registry.list().length >= MOST_REGISTERED;
      if (full) break;
      const entry = await registry.register({ name, baseUrl, volatile: true }).catch(() => undefined);
      if (entry !== undefined) added.push(name);
    }
    const said = added.length === 0 ? "no new swarms" : `registered, without tokens: ${added.join(", ")}`;
    return `${url}: ${said}${full ? `; the limit of ${MOST_REGISTERED} swarms is reached` : ""}`;
  }
  const names = await registry.propose(found);
  return names.length === 0
    ? `${url}: no new swarms`
    : `${url}: proposed; an admin must accept: ${names.join(", ")}`;
}

function isArguments(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
