/** `mailroom map --stdio`: MAP on standard input and output, one JSON object per line. */
import { createInterface } from "node:readline";
import type { WebSocket } from "ws";
import { patiently } from "../control/patience.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { type MapOptions, wayToMap } from "../map-socket.js";
import type { RunningServer } from "../server/start.js";
import type { Terminal } from "../terminal.js";

export async function runMap(
  options: MapOptions & { readonly stdio?: boolean },
  terminal: Terminal,
): Promise<ExitCode> {
  if (options.stdio !== true) {
    throw new CliError("usage", "say --stdio; over the network, MAP is at /map of every server", {
      exit: EXIT.usage,
    });
  }
  const own = await patiently(
    (line) => terminal.note(line),
    () => serveUnlessServed(options, terminal),
  );
  try {
    const way = await wayToMap(options, terminal);
    if (way.url === undefined) {
      throw new CliError(
        "no_control",
        "a server without a data directory cannot be reached; set one with --data",
      );
    }
    const piped = pipe(way.open());
    if (own === undefined) return await piped;
    // Closing it says why it cannot go on.
    return await Promise.race([piped, own.failed.then(() => EXIT.storeFailed)]);
  } finally {
    await own?.close();
  }
}

/** If nobody serves the data directory, this process does, for as long as somebody writes to it. */
async function serveUnlessServed(
  options: MapOptions,
  terminal: Terminal,
): Promise<RunningServer | undefined> {
  const { url, settings } = await wayToMap(options, terminal);
  if (url !== undefined) return undefined;
  const { startServer } = await import("../server/start.js");
  const onAnyPort = { ...settings, server: { ...settings.server, port: 0 } };
  return startServer(onAnyPort, process.cwd(), (line) => terminal.note(line));
}

/** Passes lines on as frames and frames as lines, until either side ends. */
async function pipe(socket: WebSocket): Promise<ExitCode> {
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", (cause) =>
      reject(new CliError("unreachable", `the server does not let us in: ${cause.message}`, { cause })),
    );
  });
  const ended = new Promise<Closing>((resolve) =>
    socket.once("close", (code, reason) => resolve({ code, reason: String(reason) })),
  );
  const unanswered = new Set<string>();
  let over = false;
  const closeWhenAnswered = () => {
    if (over && unanswered.size === 0) socket.close();
  };
  socket.on("message", (data) => {
    const text = String(data);
    process.stdout.write(`${text}\n`);
    const { id, method } = idAndMethod(text);
    if (method === undefined && id !== undefined) unanswered.delete(id);
    closeWhenAnswered();
  });
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    if (line.trim() === "") return;
    const { id, method } = idAndMethod(line);
    if (method !== undefined && id !== undefined) unanswered.add(id);
    socket.send(line);
  });
  // What was asked before the input ended is still answered.
  lines.once("close", () => {
    over = true;
    closeWhenAnswered();
  });
  const closing = await ended;
  lines.close();
  process.stdin.destroy();
  const finished = WELL_CLOSED.has(closing.code) && unanswered.size === 0;
  if (!finished) throw cutOff(closing, unanswered.size);
  return EXIT.ok;
}

interface Closing {
  readonly code: number;
  readonly reason: string;
}

/** Said by the server after `map/disconnect`, or nothing said in answer to our own closing. */
const WELL_CLOSED: ReadonlySet<number> = new Set([1000, 1005]);
const EXITS: Readonly<Record<number, ExitCode>> = { 1008: EXIT.refused, 1009: EXIT.failure };
const REASONS: Readonly<Record<number, string>> = {
  1006: "it was cut",
  1009: "a line was longer than the server takes",
};

/** Whoever wrote to us has to know that it was not all heard. */
function cutOff({ code, reason }: Closing, unanswered: number): CliError {
  const why = reason === "" ? (REASONS[code] ?? "no reason was given") : reason;
  const left = unanswered === 0 ? "" : `; requests without an answer: ${unanswered}`;
  return new CliError("connection_lost", `the connection ended with ${code}: ${why}${left}`, {
    exit: EXITS[code] ?? EXIT.unreachable,
  });
}

/** The server judges what is written; here only answers are matched to requests. */
function idAndMethod(text: string): { readonly id?: string; readonly method?: string } {
  try {
    const frame: unknown = JSON.parse(text);
    if (typeof frame !== "object" || frame === null) return {};
    return {
      ...("id" in frame && frame.id !== null && { id: JSON.stringify(frame.id) }),
      ...("method" in frame && typeof frame.method === "string" && { method: frame.method }),
    };
  } catch {
    return {};
  }
}
