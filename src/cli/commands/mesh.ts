/** `mailroom mesh …`: the operation of each command, and how its result is printed. */

import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { MailroomError } from "../../base/index.js";
import { replaceFile } from "../../base/node.js";
import type { AdminOperationName, AdminResult } from "../../mesh/index.js";
import { reachLocalServer } from "../../server/control.js";
import { resolveDataDirectory } from "../data-directory.js";
import { EXIT, type ExitCode } from "../exit.js";
import { askMesh, placeOf } from "../mesh/source.js";
import type { DataOptions } from "../options.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

export interface MeshOptions extends DataOptions {
  readonly swarm?: string;
}

export interface InitOptions extends DataOptions {
  readonly agentId: string;
  readonly endpoint?: string;
  readonly dev?: boolean;
  readonly force?: boolean;
}

export async function initAgent(options: InitOptions, terminal: Terminal): Promise<ExitCode> {
  // `--dev` is a flag of `mesh init` here, not the server's setting.
  const { agentId, endpoint, dev = false, force = false, ...place } = options;
  const { settings, data } = await resolveDataDirectory(placeOf(place), terminal);
  const chosen = endpoint ?? settings.mesh.endpoint;
  if (chosen === undefined) {
    throw new MailroomError("usage", "the agent requires an endpoint", {
      details: {
        hint: "set it with --endpoint https://agent.example.com/swarm, or as mesh.endpoint in mail.toml",
      },
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
  if (server !== undefined) terminal.note("a server is running: restart it to serve this agent");
  return EXIT.ok;
}

export async function makeDevCa(
  options: DataOptions & { readonly host?: readonly string[] },
  terminal: Terminal,
): Promise<ExitCode> {
  const { host = [], ...place } = options;
  const { data } = await resolveDataDirectory(placeOf(place), terminal);
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
  const { data } = await resolveDataDirectory(placeOf(options), terminal);
  const { meshIdentity } = await import("../../mesh/index.js");
  const identity = meshIdentity(data);
  if (identity === undefined) {
    throw new MailroomError("not_initialized", `no mesh agent in ${data}`, {
      details: { hint: "run 'mailroom mesh init' first" },
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

/** The default swarm of commands, and where it comes from. */
async function defaultSwarm(options: MeshOptions, terminal: Terminal): Promise<AdminResult> {
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

/** Runs one operation and prints its result. */
export async function run(
  name: AdminOperationName,
  given: object,
  options: DataOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  tell(options, terminal, await askMesh(name, given, options, terminal));
  return EXIT.ok;
}

/** The swarm that a command names, else the variable `SWARM_ID`. Without either there must be only one swarm. */
export function swarmOf({ swarm }: MeshOptions, { env }: Terminal): { readonly swarm?: string } {
  const chosen = swarm ?? (env.SWARM_ID === "" ? undefined : env.SWARM_ID);
  return chosen === undefined ? {} : { swarm: chosen };
}

/** @throws MailroomError when the user declines. Scripts are not asked. */
export async function assertSure(
  question: string,
  { yes, json }: { readonly yes?: boolean; readonly json?: boolean },
  terminal: Terminal,
): Promise<void> {
  if (yes === true || json === true || !terminal.interactive) return;
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({ message: question });
  if (isCancel(answer) || !answer) {
    throw new MailroomError("interrupted", "nothing was changed");
  }
}

/** The content of a message: as given, or from standard input. @throws MailroomError when it is missing */
export async function contentOf(message: string | undefined, terminal: Terminal): Promise<string> {
  const content = message ?? (await text(terminal.stdin)).replace(/\n$/u, "");
  if (content !== "") return content;
  const missing =
    message === undefined ? "--message is missing, and standard input is empty" : "--message is empty";
  throw new MailroomError("usage", missing, {
    details: { hint: "give the content with --message TEXT, or on standard input" },
  });
}

export async function exportState(
  options: DataOptions & { readonly output?: string },
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

/** ASP: State File. Readable by its owner only, even if it replaces a file with other permissions. */
async function writeState(path: string, text: string): Promise<void> {
  const isDevice = await stat(path).then(
    (found) => !found.isFile(),
    () => false,
  );
  // Devices and pipes are written to, not replaced.
  if (isDevice) await writeFile(path, text);
  else replaceFile(path, text);
}

export async function importState(
  options: DataOptions & {
    readonly input: string;
    readonly merge?: boolean;
    readonly force?: boolean;
    readonly yes?: boolean;
  },
  terminal: Terminal,
): Promise<ExitCode> {
  const { input, merge = false, force = false } = options;
  if (!merge) await assertSure("Replace the entire state of this agent?", options, terminal);
  const state = await readFile(input, "utf8");
  const outcome = await askMesh("import", { state, merge, force }, options, terminal);
  tell(options, terminal, { ...outcome, source: input });
  return EXIT.ok;
}

/** Prints JSON for scripts; for users the same, one line per field. */
function tell({ json }: DataOptions, terminal: Terminal, outcome: AdminResult): void {
  if (json === true) return terminal.json(outcome);
  // Printed alone on standard output, for use as INVITE=$(mailroom mesh invite)
  if (typeof outcome.invite_token === "string") return terminal.out(outcome.invite_token);
  for (const line of linesOf(outcome)) terminal.out(escapeControlCharacters(line));
}

function* linesOf(outcome: AdminResult, indent = ""): Generator<string> {
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
      yield* fieldLines(label, name, Array.isArray(value) ? value.join(", ") || "none" : String(value));
    }
  }
}

const LINE_BREAKS = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/u;

/**
 * Text of other agents must not look like a line of this listing: the lines of a message are marked, and every other field
 * is one line.
 */
function* fieldLines(label: string, name: string, value: string): Generator<string> {
  const lines = value.split(LINE_BREAKS);
  if (name !== "content") yield `${label}: ${lines.join(" ")}`;
  else if (lines.length === 1) yield `${label}: ${value}`;
  else yield* [`${label}:`, ...lines.map((line) => `${" ".repeat(label.search(/\S/u))}  | ${line}`)];
}
