/** Interswarm actions with the names and arguments of REF-21: query other swarms by URL, behind the outbound guard. */
import { z } from "zod";
import { isRecord, MailroomError } from "../../base/index.js";
import type { Action } from "../../engine/index.js";
import { defineAction } from "../define.js";
import { type Outbound, type OutboundOptions, outbound } from "../outbound.js";

export type InterswarmActionName = "ping_swarm" | "get_swarm_health" | "get_swarm_registry";

/** The response is not that of a MAIL server. */
function notASwarm(message: string): MailroomError {
  return new MailroomError("not_a_swarm", message);
}

const Address = z.strictObject({
  url: z.string().min(1).max(2_048).describe("The base URL of the swarm's server, https://…"),
});

/**
 * Makes actions that look up other swarms: whether they answer, and what they offer.
 * @example
 * const { ping_swarm } = interswarmActions({ allow: ["loopback"] });
 */
export function interswarmActions(
  options: OutboundOptions = {},
): Readonly<Record<InterswarmActionName, Action>> {
  const out = outbound(options);
  const look = (
    name: InterswarmActionName,
    description: string,
    path: string,
    read: (answer: Readonly<Record<string, unknown>>, url: string) => string,
  ): Action =>
    defineAction({
      name,
      description,
      parameters: Address,
      idempotent: true,
      run: async ({ url }, { signal }) => read(await fetchRecord(out, join(url, path), signal), url),
    });
  return {
    ping_swarm: look(
      "ping_swarm",
      "Returns 'pong' if a MAIL swarm answers at the URL.",
      "/",
      (answer, url) => {
        const { swarm } = answer;
        if (isRecord(swarm) && typeof swarm.name === "string" && swarm.entrypoint !== undefined)
          return "pong";
        throw notASwarm(`${url} is not a MAIL swarm`);
      },
    ),
    get_swarm_health: look(
      "get_swarm_health",
      "Returns the health of a swarm's server.",
      "/health",
      ({ status }, url) => {
        if (typeof status === "string") return status;
        throw notASwarm(`${url}/health returned no status`);
      },
    ),
    get_swarm_registry: look(
      "get_swarm_registry",
      "Lists the swarms in a swarm's registry, one 'name@url' per line.",
      "/swarms",
      ({ swarms }, url) => {
        if (!Array.isArray(swarms)) throw notASwarm(`${url}/swarms returned no list of swarms`);
        return swarms
          .flatMap((swarm: unknown) => {
            if (!isRecord(swarm) || typeof swarm.swarm_name !== "string") return [];
            return [`${swarm.swarm_name}@${String(swarm.base_url ?? "")}`];
          })
          .join("\n");
      },
    ),
  };
}

async function fetchRecord(
  out: Outbound,
  url: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const answer = await out.client.request(url, {
    headers: { accept: "application/json" },
    timeLimit: out.timeLimit,
    maxBytes: out.maxBytes,
    maxRedirects: 5,
    signal,
  });
  if (answer.status !== 200) throw notASwarm(`${url} answered with status ${answer.status}`);
  const parsed = parseJson(answer.text());
  if (isRecord(parsed)) return parsed;
  throw notASwarm(`${url} did not answer with a JSON object`);
}

function join(base: string, path: string): string {
  return `${base.replace(/\/+$/, "")}${path}`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
