/** The message of a server that has started. */
import { isRecord } from "../base/index.js";
import type { MeshFacts } from "../doors/mesh/index.js";
import { versions } from "../server/control.js";
import type { RunningServer, Settings } from "../server/index.js";
import type { Terminal } from "./terminal.js";

export function banner(running: RunningServer, settings: Settings, terminal: Terminal): string[] {
  const { bold, dim, yellow, green } = terminal.colors;
  const { unfinishedTasks, swarm, url, dataDirectory: data, mailroom } = running;
  const { file } = swarm;
  const definition = mailroom.swarm;
  const agents = definition.agents.map(({ name }) => name).join(", ");
  const row = (name: string, text: string) => `  ${dim(name.padEnd(7))} ${text}`;
  return [
    `${bold("mailroom")} ${versions().mailroom} serves the swarm ${bold(definition.name)} (${agents})`,
    row("url", `${green(url)}  ${dim(`(documentation: ${url}/docs)`)}`),
    ...(typeof running.facts.console === "string" ? [row("console", green(running.facts.console))] : []),
    row("swarm", file ?? "the demonstration swarm; give your own with --swarm FILE"),
    row("data", data ?? yellow("none: data is in memory and is lost when this process ends")),
    row("auth", authLine(settings)),
    ...(isMeshFacts(running.facts.mesh) ? [row("mesh", meshLine(running.facts.mesh))] : []),
    ...firstTokenLines(running, terminal),
    ...(unfinishedTasks > 0 ? [row("tasks", `${unfinishedTasks} unfinished, resumed`)] : []),
    ...(data !== undefined && !running.controlled
      ? [
          row(
            "note",
            yellow(
              "the data directory's path is too long for a control socket: 'mailroom token' cannot reach this server",
            ),
          ),
        ]
      : []),
    ...swarm.warnings.map((warning) => row("warning", yellow(warning))),
    "",
    "Try:",
    ...suggestions(running, settings).map((line) => `  ${line}`),
    "",
    dim("Ctrl-C stops the server; unfinished tasks resume at the next start."),
  ];
}

function firstTokenLines({ firstToken }: RunningServer, { colors }: Terminal): string[] {
  if (firstToken === undefined) return [];
  const { bold, yellow, dim } = colors;
  return [
    `  ${dim("token".padEnd(7))} ${bold(firstToken.token)}`,
    `  ${" ".repeat(7)} ${yellow("this is the admin token, and the only time it is shown: keep it")}`,
  ];
}

function meshLine({ agent_id, endpoint, port }: MeshFacts): string {
  const heard =
    port === undefined ? "no listener: set mesh.listen to be reached" : `listening on port ${port}`;
  return `${agent_id} at ${endpoint} (${heard})`;
}

function isMeshFacts(facts: unknown): facts is MeshFacts {
  return isRecord(facts) && typeof facts.agent_id === "string";
}

function authLine({ server, auth }: Settings): string {
  if (server.dev) {
    return "development: no token needed, and any 'role:id' is accepted as a token; local connections only";
  }
  const names = { token: "tokens", service: "an external service", jwt: "JWT" } as const;
  return `${auth.mode.map((mode) => names[mode]).join(", ")}; 'mailroom token create --role user --id ann' makes one`;
}

function suggestions(
  { url, dataDirectory: data, firstToken }: RunningServer,
  { server }: Settings,
): string[] {
  const token = server.dev ? "" : ` --token ${firstToken === undefined ? "TOKEN" : "THE_TOKEN_ABOVE"}`;
  const header = server.dev
    ? ""
    : ` -H 'authorization: Bearer ${firstToken === undefined ? "TOKEN" : "THE_TOKEN_ABOVE"}'`;
  return [
    `npx mailroom client ${url}${token}`,
    `curl ${url}/message${header} -H 'content-type: application/json' -d '{"body": "Hello"}'`,
    `npx mailroom tasks list${server.data === undefined ? "" : dataFlag(data)}`,
  ];
}

/** The option that other commands need to find a server outside the default data directory. */
export function dataFlag(data: string | undefined): string {
  if (data === undefined) return "";
  return ` --data ${/^[\w@%+=:,./-]+$/.test(data) ? data : `'${data.replaceAll("'", "'\\''")}'`}`;
}
