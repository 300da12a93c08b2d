/** `mailroom server` */
import { loadConfig, type Settings } from "../../config/index.js";
import type { SwarmDefinition } from "../../engine/definition.js";
import { EXIT, type ExitCode } from "../exit.js";
import { flagsOf } from "../place.js";
import { banner } from "../server/banner.js";
import { printStreams } from "../server/llm-streams.js";
import { reloadOnChange } from "../server/reload.js";
import { untilStopped } from "../server/signals.js";
import { type RunningServer, startServer } from "../server/start.js";
import type { Terminal } from "../terminal.js";

export interface ServerCommandOptions {
  readonly config?: string;
  readonly json?: boolean;
}

export async function runServer(options: ServerCommandOptions, terminal: Terminal): Promise<ExitCode> {
  const directory = process.cwd();
  const { settings } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  const stopped = untilStopped(() => terminal.note("stopping; once more to stop at once"));
  const running = await startServer(settings, directory, (line) => terminal.note(line));
  exportEnvironment(running, settings);
  // Before anybody is told that it runs: what they change from then on is noticed.
  const stops = [...extras(running, settings, terminal), onHangUp(running, terminal)];
  if (options.json === true) terminal.json(facts(running));
  else for (const line of banner(running, settings, terminal)) terminal.out(line);
  await Promise.race([stopped, running.failed]);
  for (const stop of stops) stop();
  await running.close().finally(endSoon);
  return EXIT.ok;
}

/** Milliseconds for what is still running when a server is closed. */
const LAST_MOMENT = 1_000;

/** An action that does not heed its signal must not keep a process that serves nobody any more. */
function endSoon(): void {
  setTimeout(() => process.exit(), LAST_MOMENT).unref();
}

function facts(running: RunningServer): unknown {
  const { url, data, mailroom, unfinished, firstToken, mesh } = running;
  return {
    url,
    swarm: mailroom.swarm.name,
    data: data ?? null,
    pid: process.pid,
    recovered: unfinished,
    ...(mesh?.port !== undefined && { mesh: { agent_id: mesh.node.id, port: mesh.port } }),
    ...(firstToken !== undefined && { admin_token: firstToken.token }),
  };
}

function extras(running: RunningServer, settings: Settings, terminal: Terminal): (() => void)[] {
  const { mailroom, swarm, http } = running;
  const stops: (() => void)[] = [];
  if (settings.server.settings.printLlmStreams && process.stderr.isTTY === true) {
    stops.push(printStreams(mailroom.bus, (text) => void process.stderr.write(text)));
  }
  if (settings.server.reload && swarm.file !== undefined) {
    const load = async () => (await running.loadSwarm()).definition;
    const say = (line: string) => terminal.note(line);
    const use = (definition: SwarmDefinition) => http.useSwarm(definition);
    stops.push(reloadOnChange({ file: swarm.file, swarm: mailroom.swarm.name, load, use, say }));
  }
  return stops;
}

/** Decisions D10: certificates are read again on SIGHUP. One that cannot be used must not end the server. */
function onHangUp({ http, mesh }: RunningServer, terminal: Terminal): () => void {
  const reload = () => {
    for (const renew of [() => http.reloadTls(), () => mesh?.renew()]) {
      try {
        renew();
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        terminal.note(`the certificate in use is kept, the new one cannot be used: ${why}`);
      }
    }
  };
  process.on("SIGHUP", reload);
  return () => void process.removeListener("SIGHUP", reload);
}

/** Decisions D8: for programs that actions start. Mailroom itself does not read them. */
function exportEnvironment({ url, swarm }: RunningServer, { server }: Settings): void {
  process.env.SWARM_NAME = swarm.definition.name;
  process.env.BASE_URL = server.publicUrl ?? url;
  if (swarm.file !== undefined) process.env.SWARM_SOURCE = swarm.file;
  if (server.swarm.registry !== undefined) process.env.SWARM_REGISTRY_FILE = server.swarm.registry;
}
