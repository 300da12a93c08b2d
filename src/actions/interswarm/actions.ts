/** The interswarm actions of mail.md 8.5: looks at other swarms by their address, behind the outbound guard. */
import { z } from "zod";
import type { Action } from "../../engine/agent.js";
import { isRecord } from "../../mail/record.js";
import { defineAction } from "../define.js";
import { type Outbound, type OutboundOptions, outbound } from "../outbound.js";

export type InterswarmActionName = "ping_swarm" | "get_swarm_health" | "get_swarm_registry";

/** What the other side answered is not what a MAIL server answers. */
export class InterswarmActionError extends Error {
  override readonly name = "InterswarmActionError";
  readonly code = "not_a_swarm";
}

const Address = z.strictObject({
  url: z.string().min(1).max(2_048).describe("The base address of the swarm's server, https://…"),
});

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
      "Says 'pong' if a MAIL swarm answers at the address.",
      "/",
      (answer, url) => {
        const { swarm } = answer;
        if (isRecord(swarm) && typeof swarm.name === "string" && swarm.entrypoint !== undefined)
          return "pong";
        throw new InterswarmActionError(`${url} answers, but not as a MAIL swarm does`);
      },
    ),
    get_swarm_health: look(
      "get_swarm_health",
      "Says how a swarm's server is doing.",
      "/health",
      ({ status }, url) => {
        if (typeof status === "string") return status;
        throw new InterswarmActionError(`${url}/health does not tell a status`);
      },
    ),
    get_swarm_registry: look(
      "get_swarm_registry",
      "Lists the swarms that a swarm knows, one 'name@address' per line.",
      "/swarms",
      ({ swarms }, url) => {
        if (!Array.isArray(swarms)) throw new InterswarmActionError(`${url}/swarms does not list swarms`);
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
  if (answer.status !== 200) throw new InterswarmActionError(`${url} answered with status ${answer.status}`);
  const parsed = parseJson(answer.text());
  if (isRecord(parsed)) return parsed;
  throw new InterswarmActionError(`${url} did not answer with a JSON object`);
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
