/** `mailroom demo`: starts a server with the demonstration swarm and shows how its agents solve a task. */
import { resolve } from "node:path";
import { MailClient } from "../../client/index.js";
import { DEMO_SWARM, dataDirectoryFor } from "../../server/control.js";
import { loadConfig, type RunningServer, type Settings, startServer } from "../../server/index.js";
import { dataFlag } from "../banner.js";
import { EXIT, type ExitCode } from "../exit.js";
import { renderEvents } from "../repl/message-commands.js";
import { waitForStopSignal } from "../signals.js";
import type { Terminal } from "../terminal.js";

export interface DemoOptions {
  readonly port?: string;
  readonly data?: string;
  readonly message?: string;
  readonly once?: boolean;
  readonly exit?: boolean;
}

/** A task that waits for the person at the console. */
const PICNIC = { taskId: "picnic", body: "Please plan a picnic for tomorrow." } as const;

const QUESTION = "What will the weather be like in Oslo tomorrow, and what is 12 * (3 + 4)?";
const DEFAULT_PORT = "8000";

export async function runDemo(options: DemoOptions, terminal: Terminal): Promise<ExitCode> {
  const { bold, dim, green } = terminal.colors;
  const data =
    options.data === undefined ? dataDirectoryFor(DEMO_SWARM, process.cwd()) : resolve(options.data);
  const leaving = new AbortController();
  const stopped = waitForStopSignal(() => leaving.abort(new Error("interrupted")));
  const running = await startAnywhere(options, data);
  const { url } = running;
  const agents = running.mailroom.swarm.agents.map(({ name }) => name).join(", ");
  terminal.out(`${bold("mailroom")} serves the demonstration swarm (${agents}) at ${green(url)}`);
  terminal.out(dim(`all data is stored in ${data}`));
  terminal.out("");
  const question = options.message ?? QUESTION;
  terminal.out(`${dim("you ask:")} ${question}`);
  terminal.out("");
  let exit: ExitCode = EXIT.ok;
  try {
    const events = new MailClient(url).postMessageStream(question, { signal: leaving.signal });
    exit = await renderEvents({ terminal, json: false, verbose: false }, events);
  } catch (error) {
    if (!leaving.signal.aborted) {
      await running.close(0);
      throw error;
    }
  }
  // Without a terminal there is no Ctrl-C to end it.
  const stays = terminal.interactive && options.once !== true && options.exit !== true;
  if (stays && !leaving.signal.aborted) {
    await askForPicnic(url);
    for (const line of nextSteps(running, options.data === undefined ? "" : dataFlag(data), terminal))
      terminal.out(line);
    await Promise.race([stopped, running.failed]);
    exit = EXIT.ok;
  }
  await running.close();
  return exit;
}

/** Uses the default port, or a free one if it is taken and no port was given. */
async function startAnywhere(options: DemoOptions, data: string): Promise<RunningServer> {
  try {
    return await startServer(demoSettings(options.port ?? DEFAULT_PORT, data), data);
  } catch (error) {
    const taken = error instanceof Error && "code" in error && error.code === "port_in_use";
    if (!taken || options.port !== undefined) throw error;
    return startServer(demoSettings("0", data), data);
  }
}

/** The demonstration ignores configuration files and environment variables. */
function demoSettings(port: string, data: string): Settings {
  return loadConfig({ flags: { port, data, dev: true }, env: {}, directory: data }).settings;
}

/** An earlier demonstration on the same data may have left it waiting. */
async function askForPicnic(url: string): Promise<void> {
  const client = new MailClient(url);
  const { tasks } = await client.getTaskPage({ status: "paused", limit: 100 });
  if (tasks.some(({ task_id }) => task_id === PICNIC.taskId)) return;
  await client.postMessage(PICNIC.body, { taskId: PICNIC.taskId, entrypoint: "planner" });
}

function nextSteps({ url, facts }: RunningServer, at: string, { colors }: Terminal): string[] {
  const page = typeof facts.console === "string" ? facts.console : undefined;
  return [
    "",
    ...(page === undefined
      ? []
      : [
          `${colors.bold("Open the console:")} ${colors.green(page)}`,
          "It shows what the agents said to each other. A second task waits there for your answer.",
          "",
        ]),
    "The server keeps running. In another terminal, try:",
    ...withNotes([
      [`npx mailroom client ${url}`, "talk to it; 'help' lists the commands"],
      [`npx mailroom client ${url} message "What is 2 ^ 10?"`],
      [`npx mailroom tasks list${at}`, "works even after the server has stopped"],
      ["npx mailroom init my-swarm", "a swarm of your own"],
    ]),
    `  curl -N ${url}/message -H 'content-type: application/json' -d '{"body": "Weather in Rome?", "stream": true}'`,
    "",
    `Every route is described at ${url}/docs`,
    "",
    "Ctrl-C stops the server.",
  ];
}

/** Indented commands, with their notes in one column. */
function withNotes(commands: readonly (readonly [command: string, note?: string])[]): string[] {
  const width = Math.max(...commands.map(([command, note]) => (note === undefined ? 0 : command.length)));
  return commands.map(([command, note]) =>
    note === undefined ? `  ${command}` : `  ${command.padEnd(width)}  # ${note}`,
  );
}
