/** `mailroom mesh …`: what each command asks for, and how it tells the answer. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { replaceFile } from "../../files/durable.js";
import type { OperationName, Outcome } from "../../mesh/index.js";
import { reachLocalServer } from "../control/reach.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { PlaceOptions } from "../options.js";
import { placeFor } from "../place.js";
import { harmless, type Terminal } from "../terminal.js";
import { askMesh } from "./mesh-desk.js";

export interface MeshOptions extends PlaceOptions {
  readonly swarm?: string;
}

export interface InitOptions extends PlaceOptions {
  readonly agentId: string;
  readonly endpoint?: string;
  readonly dev?: boolean;
  readonly force?: boolean;
}

export async function initAgent(options: InitOptions, terminal: Terminal): Promise<ExitCode> {
  // `--dev` is a word of `mesh init`, and not the server's.
  const { agentId, endpoint, dev = false, force = false, ...place } = options;
  const { settings, data } = await placeFor(place, terminal);
  const chosen = endpoint ?? settings.mesh.endpoint;
  if (chosen === undefined) {
    throw new CliError("usage", "the agent needs an endpoint", {
      exit: EXIT.usage,
      hint: "give it with --endpoint https://agent.example.com/swarm, or as mesh.endpoint in mail.toml",
    });
  }
  const { initMesh } = await import("../../mesh/index.js");
  const made = initMesh({ directory: data, agentId, endpoint: chosen, dev, force });
  const server = await reachLocalServer(data);
  await server?.close();
  tell(options, terminal, {
    status: "initialized",
    agent_id: made.agentId,
    endpoint: made.endpoint,
    public_key: made.publicKey,
    config_path: join(data, "mesh", "agent.json"),
  });
  if (server !== undefined)
    terminal.note("a server runs here: start it again, so that it becomes this agent");
  return EXIT.ok;
}

export async function makeDevCa(
  options: PlaceOptions & { readonly host?: readonly string[] },
  terminal: Terminal,
): Promise<ExitCode> {
  const { host = [], ...place } = options;
  const { data } = await placeFor(place, terminal);
  const [first, ...others] = host;
  const hosts: [] | [[string, ...string[]]] = first === undefined ? [] : [[first, ...others]];
  const { makeDevCertificates } = await import("../../mesh/index.js");
  const { ca, cert, key } = await makeDevCertificates(join(data, "tls"), Date.now(), ...hosts);
  tell(options, terminal, { status: "created", ca, cert, key });
  return EXIT.ok;
}

export async function showConfig(
  options: MeshOptions & { readonly alias?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const { alias } = options;
  if (alias !== undefined) return run("alias", { ...swarmOf(options, terminal), alias }, options, terminal);
  const { data } = await placeFor(options, terminal);
  const { meshIdentity } = await import("../server/mesh-node.js");
  const identity = meshIdentity(data);
  if (identity === undefined) {
    throw new CliError("not_initialised", `there is no agent of the mesh in ${data}`, {
      hint: "run 'mailroom mesh init' first",
    });
  }
  tell(options, terminal, {
    agent_id: identity.agentId,
    endpoint: identity.endpoint,
    dev: identity.dev,
    config_path: join(data, "mesh", "agent.json"),
    db_path: join(data, "mailroom.db"),
    ...(await defaultSwarm(options, terminal)),
  });
  return EXIT.ok;
}

/** Which swarm commands are about that name none, and why. */
async function defaultSwarm(options: MeshOptions, terminal: Terminal): Promise<Outcome> {
  const { swarm: wanted } = swarmOf(options, terminal);
  const { swarms } = Swarms.parse(await askMesh("list", {}, options, terminal));
  const [only, ...others] = swarms;
  const named = swarms.find(({ swarm_id, alias, name }) => [swarm_id, alias, name].includes(wanted ?? ""));
  const resolved = named ?? (wanted === undefined && others.length === 0 ? only : undefined);
  const via = wanted === undefined ? "the only swarm" : options.swarm === undefined ? "SWARM_ID" : "--swarm";
  return {
    default_swarm: terminal.env.SWARM_ID ?? null,
    resolved_swarm_id: resolved?.swarm_id ?? null,
    resolved_via: resolved === undefined ? null : via,
  };
}

const Swarms = z.object({
  swarms: z.array(z.object({ swarm_id: z.string(), alias: z.string(), name: z.string() })),
});

/** Asks for one operation and tells what came of it. */
export async function run(
  name: OperationName,
  given: object,
  options: PlaceOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  tell(options, terminal, await askMesh(name, given, options, terminal));
  return EXIT.ok;
}

/** The swarm that a command names, or else the variable `SWARM_ID`; without either it must be the only one. */
export function swarmOf({ swarm }: MeshOptions, { env }: Terminal): { readonly swarm?: string } {
  const chosen = swarm ?? (env.SWARM_ID === "" ? undefined : env.SWARM_ID);
  return chosen === undefined ? {} : { swarm: chosen };
}

/** @throws CliError when a person says no. Scripts are not asked. */
export async function assertSure(
  question: string,
  { yes, json }: { readonly yes?: boolean; readonly json?: boolean },
  terminal: Terminal,
): Promise<void> {
  if (yes === true || json === true || !terminal.interactive) return;
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({ message: question });
  if (isCancel(answer) || !answer) {
    throw new CliError("interrupted", "nothing was done", { exit: EXIT.interrupted });
  }
}

/** The words of a message: as given, or from standard input. @throws CliError when neither has any. */
export async function contentOf(message: string | undefined, terminal: Terminal): Promise<string> {
  const content = message ?? (await text(terminal.stdin)).replace(/\n$/u, "");
  if (content !== "") return content;
  const missing =
    message === undefined ? "--message is missing, and standard input is empty" : "--message is empty";
  throw new CliError("usage", missing, {
    exit: EXIT.usage,
    hint: "say what to send with --message TEXT, or on standard input",
  });
}

export async function exportState(
  options: PlaceOptions & { readonly output?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const state = await askMesh("export", {}, options, terminal);
  if (options.output === undefined) {
    terminal.out(JSON.stringify(state, undefined, 2));
    return EXIT.ok;
  }
  await writeState(options.output, `${JSON.stringify(state, undefined, 2)}\n`);
  tell(options, terminal, { status: "exported", output: options.output });
  return EXIT.ok;
}

/** ASP: State File: for its owner only, whoever could read what was there before. */
async function writeState(path: string, text: string): Promise<void> {
  const isDevice = await stat(path).then(
    (found) => !found.isFile(),
    () => false,
  );
  // A device or a pipe is written to; replaced it would be something else.
  if (isDevice) await writeFile(path, text);
  else replaceFile(path, text);
}

export async function importState(
  options: PlaceOptions & {
    readonly input: string;
    readonly merge?: boolean;
    readonly force?: boolean;
    readonly yes?: boolean;
  },
  terminal: Terminal,
): Promise<ExitCode> {
  const { input, merge = false, force = false } = options;
  if (!merge) await assertSure("Replace everything that this agent knows?", options, terminal);
  const state = await readFile(input, "utf8");
  const outcome = await askMesh("import", { state, merge, force }, options, terminal);
  tell(options, terminal, { ...outcome, source: input });
  return EXIT.ok;
}

/** Data for scripts; for people the same, a line for each fact. */
function tell({ json }: PlaceOptions, terminal: Terminal, outcome: Outcome): void {
  if (json === true) return terminal.json(outcome);
  // Alone on standard output, so that it can be caught: INVITE=$(mailroom mesh invite)
  if (typeof outcome.invite_token === "string") return terminal.out(outcome.invite_token);
  for (const line of linesOf(outcome)) terminal.out(harmless(line));
}

function* linesOf(outcome: Outcome, indent = ""): Generator<string> {
  for (const [name, value] of Object.entries(outcome)) {
    const label = `${indent}${name.replaceAll("_", " ")}`;
    if (Array.isArray(value) && value.some((one) => typeof one === "object")) {
      yield `${label}:`;
      for (const one of value) {
        yield* linesOf(one, `${indent}  `);
        yield "";
      }
    } else if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      const lines = [...linesOf({ ...value }, `${indent}  `)];
      if (lines.length > 0) yield* [`${label}:`, ...lines];
    } else if (value !== null) {
      yield `${label}: ${Array.isArray(value) ? value.join(", ") || "none" : String(value)}`;
    }
  }
}
