/** `mailroom mcp`: MCP on standard input and output, for programs that start their MCP servers themselves. */

import { type Role, roleOf } from "../../auth/index.js";
import { MailroomError, messageOf } from "../../base/index.js";
import { bridgeMcpStdio, McpDoor, type StdioConnection, serveMcpStdio } from "../../doors/mcp/index.js";
import type { LocalServer } from "../../server/control.js";
import { atServerOr } from "../../server/control.js";
import { loadConfig, type Settings, startServer } from "../../server/index.js";
import { parseAddress } from "../connect.js";
import { dataDirectoryOf, flagsOf } from "../data-directory.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { DataOptions } from "../options.js";
import type { Terminal } from "../terminal.js";

export interface McpOptions extends DataOptions {
  readonly url?: string;
  readonly token?: string;
  /** `role:id`, where no token is needed. */
  readonly as?: string;
}

interface Caller {
  readonly role: Role;
  readonly id: string;
}

/** Connects to a running server; starts one in this process only if no server is running (decision C4). */
export async function runMcp(options: McpOptions, terminal: Terminal): Promise<ExitCode> {
  const connection =
    options.url === undefined
      ? await onThisMachine(options, terminal)
      : await elsewhere(options.url, options, terminal);
  await untilLeft(connection);
  await connection.close();
  return EXIT.ok;
}

async function elsewhere(given: string, options: McpOptions, terminal: Terminal): Promise<StdioConnection> {
  const { url, token } = parseAddress(given, options.token ?? terminal.env.MAILROOM_TOKEN);
  return reached(
    bridgeMcpStdio({ url: `${url}/mcp`, token: token ?? options.as ?? "", onError: note(terminal) }),
  );
}

async function onThisMachine(options: McpOptions, terminal: Terminal): Promise<StdioConnection> {
  const caller = callerOf(options.as ?? "admin:local");
  const directory = process.cwd();
  // Any free port, because each session of a program may start its own process.
  const { settings } = loadConfig({
    flags: { ...flagsOf(options), port: "0" },
    env: terminal.env,
    directory,
  });
  return atServerOr(
    await dataDirectoryOf(settings, directory),
    (line) => terminal.note(line),
    (local) => throughServer(local, caller, terminal),
    () => inThisProcess(settings, directory, caller, terminal),
  );
}

async function throughServer(
  local: LocalServer,
  caller: Caller,
  terminal: Terminal,
): Promise<StdioConnection> {
  const bridge = await reached(
    bridgeMcpStdio({
      url: "http://localhost/mcp",
      token: `${caller.role}:${caller.id}`,
      fetch: (input, init) => local.fetch(String(input), init ?? {}),
      onError: note(terminal),
    }),
  );
  return {
    closed: bridge.closed,
    async close() {
      await bridge.close();
      await local.close();
    },
  };
}

async function inThisProcess(
  settings: Settings,
  directory: string,
  caller: Caller,
  terminal: Terminal,
): Promise<StdioConnection> {
  const running = await startServer(settings, directory, (line) => terminal.note(line));
  terminal.note(
    `no server was running; this process serves '${running.mailroom.swarm.name}' at ${running.url}`,
  );
  const onError = note(terminal);
  const { strictIds } = settings.server;
  const { adminsActForOwners } = settings.auth;
  const door = new McpDoor(running.mailroom, { strictIds, adminsActForOwners, onError });
  const connection = serveMcpStdio(door, caller, { onError });
  return {
    closed: Promise.race([connection.closed, running.failed.then(() => {})]),
    async close() {
      await connection.close();
      await running.close();
    },
  };
}

async function reached<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const reason = messageOf(error);
    throw new MailroomError("mcp_unreachable", `cannot use the server's MCP endpoint: ${reason}`, {
      details: {
        hint: "check that the server is running and that the token belongs to a user, an admin or a member",
      },
      cause: error,
    });
  }
}

function callerOf(text: string): Caller {
  const colon = text.indexOf(":");
  const role = roleOf(text.slice(0, Math.max(0, colon)));
  const id = text.slice(colon + 1);
  if (role !== undefined && id !== "") return { role, id };
  throw new MailroomError("usage", `--as '${text}' is not of the form role:id`, {
    details: { hint: "for example user:ann, or member:coder to be the agent 'coder'" },
  });
}

/** Resolves when standard input has ended and all requests are answered, or at a signal. */
async function untilLeft({ closed }: StdioConnection): Promise<void> {
  const signals = ["SIGINT", "SIGTERM"] as const;
  let leave = () => {};
  const signalled = new Promise<void>((resolve) => {
    leave = resolve;
  });
  for (const signal of signals) process.once(signal, leave);
  await Promise.race([closed, signalled]);
  for (const signal of signals) process.removeListener(signal, leave);
}

function note(terminal: Terminal): (error: Error) => void {
  return (error) => terminal.note(`mcp: ${error.message}`);
}
