/** `mailroom map --stdio`: MAP on standard input and output, one JSON object per line. */

import { createInterface } from "node:readline";
import type { WebSocket } from "ws";
import { type ErrorCode, MailroomError } from "../../base/index.js";
import { retryWhileLocked } from "../../server/control.js";
import type { RunningServer } from "../../server/index.js";
import { EXIT, type ExitCode } from "../exit.js";
import { findMapTarget, type MapOptions } from "../map-socket.js";
import type { Terminal } from "../terminal.js";

export async function runMap(
  options: MapOptions & { readonly stdio?: boolean },
  terminal: Terminal,
): Promise<ExitCode> {
  if (options.stdio !== true) {
    throw new MailroomError("usage", "add --stdio; over the network, every server has MAP at /map");
  }
  const own = await retryWhileLocked(
    (line) => terminal.note(line),
    () => serveUnlessServed(options, terminal),
  );
  try {
    const target = await findMapTarget(options, terminal);
    if (target.url === undefined) {
      throw new MailroomError(
        "no_control",
        "a server without a data directory cannot be reached: set one with --data",
      );
    }
    const piped = pipe(target.open());
    if (own === undefined) return await piped;
    // Closing it returns the reason of the failure.
    return await Promise.race([piped, own.failed.then(() => EXIT.storeFailed)]);
  } finally {
    await own?.close();
  }
}

/** If no server runs on the data directory, this process serves it while its input is open. */
async function serveUnlessServed(
  options: MapOptions,
  terminal: Terminal,
): Promise<RunningServer | undefined> {
  const { url, settings } = await findMapTarget(options, terminal);
  if (url !== undefined) return undefined;
  const { startServer } = await import("../../server/index.js");
  const onAnyPort = { ...settings, server: { ...settings.server, port: 0 } };
  return startServer(onAnyPort, process.cwd(), (line) => terminal.note(line));
}

/** Forwards lines as frames and frames as lines, until either side ends. */
async function pipe(socket: WebSocket): Promise<ExitCode> {
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", (cause) =>
      reject(
        new MailroomError("unreachable", `the server rejected the connection: ${cause.message}`, { cause }),
      ),
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
  // Requests sent before the input ended are still answered.
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

/** Sent by the server after `map/disconnect`, or no code in answer to our own close. */
const WELL_CLOSED: ReadonlySet<number> = new Set([1000, 1005]);
/** Close codes that mean something else than a lost connection. */
const CODES: Readonly<Record<number, ErrorCode>> = { 1008: "unauthenticated", 1009: "too_large" };
const REASONS: Readonly<Record<number, string>> = {
  1006: "connection lost",
  1009: "a line exceeded the server's size limit",
};

/** The caller must know that some requests were not answered. */
function cutOff({ code, reason }: Closing, unanswered: number): MailroomError {
  const why = reason === "" ? (REASONS[code] ?? "no reason given") : reason;
  const left = unanswered === 0 ? "" : `; requests without an answer: ${unanswered}`;
  return new MailroomError(
    CODES[code] ?? "connection_lost",
    `the connection ended with code ${code}: ${why}${left}`,
  );
}

/** The server validates messages; this only matches answers to requests. */
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
