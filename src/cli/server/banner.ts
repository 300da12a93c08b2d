/** What a server says when it has started. */
import type { Settings } from "../../config/index.js";
import type { Terminal } from "../terminal.js";
import { versions } from "../version.js";
import type { RunningServer } from "./start.js";

export function banner(running: RunningServer, settings: Settings, terminal: Terminal): string[] {
  const { bold, dim, yellow, green } = terminal.colours;
  const { unfinished, swarm, url, data } = running;
  const { definition, file } = swarm;
  const agents = definition.agents.map(({ name }) => name).join(", ");
  const row = (name: string, text: string) => `  ${dim(name.padEnd(7))} ${text}`;
  return [
    `${bold("mailroom")} ${versions().mailroom} serves the swarm ${bold(definition.name)} (${agents})`,
    row("url", `${green(url)}  ${dim(`(documentation: ${url}/docs)`)}`),
    row("swarm", file ?? "the demonstration swarm; give your own with --swarm FILE"),
    row("data", data ?? yellow("none: everything is kept in memory and is gone when this process ends")),
    row("auth", authLine(settings)),
    ...(running.mesh === undefined ? [] : [row("mesh", meshLine(running.mesh))]),
    ...firstTokenLines(running, terminal),
    ...(unfinished > 0 ? [row("tasks", `${unfinished} unfinished, taken up again`)] : []),
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
    dim("Ctrl-C stops it in good order; what runs is taken up at the next start."),
  ];
}

export function firstTokenLines({ firstToken }: RunningServer, { colours }: Terminal): string[] {
  if (firstToken === undefined) return [];
  const { bold, yellow, dim } = colours;
  return [
    `  ${dim("token".padEnd(7))} ${bold(firstToken.token)}`,
    `  ${" ".repeat(7)} ${yellow("this is the admin token, and the only time it is shown: keep it")}`,
  ];
}

function meshLine({ node, port }: NonNullable<RunningServer["mesh"]>): string {
  const { agentId, endpoint } = node.core.parts.identity;
  const heard =
    port === undefined ? "no listener: set mesh.listen to be reached" : `listening on port ${port}`;
  return `${agentId} at ${endpoint} (${heard})`;
}

function authLine({ server, auth }: Settings): string {
  if (server.dev) {
    return "development: no token needed, or 'role:id' taken at its word; only this machine is served";
  }
  const names = { token: "tokens", service: "an external service", jwt: "JWT" } as const;
  return `${auth.mode.map((mode) => names[mode]).join(", ")}; 'mailroom token create --role user --id ann' makes one`;
}

function suggestions({ url, data, firstToken }: RunningServer, { server }: Settings): string[] {
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

/** What other commands need to find a server that is not where they look by themselves. */
export function dataFlag(data: string | undefined): string {
  if (data === undefined) return "";
  return ` --data ${/^[\w@%+=:,./-]+$/.test(data) ? data : `'${data.replaceAll("'", "'\\''")}'`}`;
}
