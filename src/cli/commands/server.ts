/** `mailroom server`. */

import type { SwarmDefinition } from "../../engine/index.js";
import {
  loadServerConfig,
  type RunningServer,
  reloadOnChange,
  type Settings,
  startServer,
} from "../../server/index.js";
import { formatProblem } from "../../settings/index.js";
import { banner } from "../banner.js";
import { flagsOf } from "../data-directory.js";
import { EXIT, type ExitCode } from "../exit.js";
import { limitHeapGrowth } from "../heap-growth.js";
import { printStreams } from "../llm-streams.js";
import { waitForStopSignal } from "../signals.js";
import type { Terminal } from "../terminal.js";

export interface ServerCommandOptions {
  readonly config?: string;
  readonly json?: boolean;
}

export async function runServer(options: ServerCommandOptions, terminal: Terminal): Promise<ExitCode> {
  limitHeapGrowth();
  const directory = process.cwd();
  const { settings, warnings, extensions } = await loadServerConfig({
    flags: flagsOf(options),
    env: terminal.env,
    directory,
  });
  for (const warning of warnings) terminal.note(`warning: ${formatProblem(warning)}`);
  const stopped = waitForStopSignal(() => terminal.note("stopping; press Ctrl-C again to stop immediately"));
  const running = await startServer(settings, directory, (line) => terminal.note(line), extensions);
  exportEnvironment(running, settings);
  // Before the server is announced, so that later changes are noticed.
  const stops = [...extras(running, settings, terminal), onHangUp(running, terminal)];
  if (options.json === true) terminal.json(facts(running));
  else for (const line of banner(running, settings, terminal)) terminal.out(line);
  await Promise.race([stopped, running.failed]);
  for (const stop of stops) stop();
  await running.close().finally(endSoon);
  return EXIT.ok;
}

/** Milliseconds for running work when a server closes. */
const LAST_MOMENT = 1_000;

/** An action that ignores its signal must not keep a closed server's process alive. */
function endSoon(): void {
  setTimeout(() => process.exit(), LAST_MOMENT).unref();
}

function facts(running: RunningServer): unknown {
  const { url, dataDirectory, mailroom, unfinishedTasks, firstToken, facts } = running;
  return {
    url,
    swarm: mailroom.swarm.name,
    data: dataDirectory ?? null,
    pid: process.pid,
    recovered: unfinishedTasks,
    ...facts,
    ...(firstToken !== undefined && { admin_token: firstToken.token }),
  };
}

function extras(running: RunningServer, settings: Settings, terminal: Terminal): (() => void)[] {
  const { mailroom, swarm } = running;
  const stops: (() => void)[] = [];
  if (settings.server.printLlmStreams && process.stderr.isTTY === true) {
    stops.push(printStreams(mailroom.bus, (text) => void process.stderr.write(text)));
  }
  if (settings.server.reload && swarm.file !== undefined) {
    const load = () => running.loadSwarm();
    const notify = (line: string) => terminal.note(line);
    const use = (definition: SwarmDefinition) => running.useSwarm(definition);
    stops.push(reloadOnChange({ file: swarm.file, swarm: mailroom.swarm.name, load, use, say: notify }));
  }
  return stops;
}

/** Re-reads certificates on SIGHUP (decision D10). An unusable certificate must not stop the server. */
function onHangUp(running: RunningServer, terminal: Terminal): () => void {
  const reload = async () => {
    for (const { message } of await running.reload()) {
      terminal.note(`the new certificate cannot be used, the old one stays active: ${message}`);
    }
  };
  process.on("SIGHUP", reload);
  return () => void process.removeListener("SIGHUP", reload);
}

/** Exports variables for programs that actions start; Mailroom itself does not read them (decision D8). */
function exportEnvironment({ url, swarm, mailroom }: RunningServer, settings: Settings): void {
  const { server, federation } = settings;
  process.env.SWARM_NAME = mailroom.swarm.name;
  process.env.BASE_URL = server.publicUrl ?? url;
  if (swarm.file !== undefined) process.env.SWARM_SOURCE = swarm.file;
  if (federation.registryFile !== undefined) process.env.SWARM_REGISTRY_FILE = federation.registryFile;
}
