/** `mailroom demo`: the first minute. A server, a swarm, a task, and what the agents say to each other. */
import { resolve } from "node:path";
import { MailClient } from "../../client/index.js";
import { loadConfig, type Settings } from "../../config/index.js";
import { EXIT, type ExitCode } from "../exit.js";
import { DEMO_SWARM, dataDirectoryFor } from "../place.js";
import { renderEvents } from "../repl/message-commands.js";
import { dataFlag } from "../server/banner.js";
import { untilStopped } from "../server/signals.js";
import { type RunningServer, startServer } from "../server/start.js";
import type { Terminal } from "../terminal.js";

export interface DemoOptions {
  readonly port?: string;
  readonly data?: string;
  readonly message?: string;
  readonly once?: boolean;
}

const QUESTION = "What will the weather be like in Oslo tomorrow, and what is 12 * (3 + 4)?";
const DEFAULT_PORT = "8000";

export async function runDemo(options: DemoOptions, terminal: Terminal): Promise<ExitCode> {
  const { bold, dim, green } = terminal.colours;
  const data =
    options.data === undefined ? dataDirectoryFor(DEMO_SWARM, process.cwd()) : resolve(options.data);
  const leaving = new AbortController();
  const stopped = untilStopped(() => leaving.abort(new Error("interrupted")));
  const running = await startAnywhere(options, data);
  const { url } = running;
  const agents = running.mailroom.swarm.agents.map(({ name }) => name).join(", ");
  terminal.out(`${bold("mailroom")} serves the demonstration swarm (${agents}) at ${green(url)}`);
  terminal.out(dim(`everything that happens is kept in ${data}`));
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
  if (options.once !== true && !leaving.signal.aborted) {
    for (const line of nextSteps(running, options.data === undefined ? "" : dataFlag(data)))
      terminal.out(line);
    await Promise.race([stopped, running.failed]);
    exit = EXIT.ok;
  }
  await running.close();
  return exit;
}

/** On the usual port, unless that is taken and nobody insisted on it. */
async function startAnywhere(options: DemoOptions, data: string): Promise<RunningServer> {
  try {
    return await startServer(demoSettings(options.port ?? DEFAULT_PORT, data), data);
  } catch (error) {
    const taken = error instanceof Error && "code" in error && error.code === "port_in_use";
    if (!taken || options.port !== undefined) throw error;
    return startServer(demoSettings("0", data), data);
  }
}

/** The demonstration is the same everywhere: no file and no variable of this machine has a say in it. */
function demoSettings(port: string, data: string): Settings {
  return loadConfig({ flags: { port, data, dev: true }, env: {}, directory: data }).settings;
}

function nextSteps({ url }: RunningServer, at: string): string[] {
  return [
    "",
    "The server goes on. In another terminal, try:",
    `  npx mailroom client ${url}                       # talk to it; 'help' lists the commands`,
    `  npx mailroom client ${url} message "What is 2 ^ 10?"`,
    `  curl -N ${url}/message -H 'content-type: application/json' -d '{"body": "Weather in Rome?", "stream": true}'`,
    `  npx mailroom tasks list${at}                # also after the server has ended`,
    "  npx mailroom init my-swarm             # a swarm of your own",
    `  ${url}/docs                            # every route`,
    "",
    "Ctrl-C ends it.",
  ];
}
