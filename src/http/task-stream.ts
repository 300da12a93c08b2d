/** A task's journal as server-sent events, in journal order. */

import type { FastifyReply } from "fastify";
import type { Clock } from "../base/index.js";
import { MailroomError } from "../base/index.js";
import {
  endsRound,
  eventsOf,
  parseEventId,
  Round,
  type RoundOutcome,
  type RoundStart,
} from "../engine/index.js";
import { type Caller, formatEvent, tokenData } from "../extension/index.js";
import type { JournalKey } from "../journal/index.js";
import { DeltaFeed, type Mailroom } from "../library/index.js";
import type { RevocationWatcher } from "./revocations.js";
import type { ShutdownSignal } from "./shutdown.js";
import { type SseLimits, SseStream } from "./sse.js";
import type { StreamMemory } from "./stream-memory.js";

/**
 * A comment, which parsers skip. Without it a client cannot tell the end of its round from a shutdown right after the
 * round of another message.
 */
const END_OF_ROUND = ": end of round\r\n\r\n";

/** When a stream ends by itself. */
export type StreamEnd =
  /** With the outcome of a message. */
  | { readonly kind: "outcome"; readonly start: RoundStart }
  /** With the first round that ends, or at the end of the journal if the task is not running. */
  | { readonly kind: "round" }
  | { readonly kind: "never" };

export interface TaskStreamOptions {
  readonly mailroom: Mailroom;
  readonly reply: FastifyReply;
  readonly task: { readonly id: string; readonly key: JournalKey };
  /** Id of the last event that the client received. */
  readonly after: string | undefined;
  readonly end: StreamEnd;
  readonly heartbeat: number;
  readonly limits: SseLimits;
  readonly clock: Clock;
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the stream when the server closes; the client reconnects. */
  readonly closing: ShutdownSignal;
  readonly caller: Caller;
  readonly revocations: RevocationWatcher;
  readonly memory: StreamMemory;
}

/** Resolves when the stream has ended. The task is not affected. */
export async function streamTask(options: TaskStreamOptions): Promise<SseStream> {
  const { mailroom, task, after, end, closing, clock } = options;
  const from = startOf(after);
  // Read before the head is sent, so that a read error still gets its status.
  const goesOn = end.kind !== "round" || (await isRunning(mailroom, task.key));
  const stream = new SseStream(options.reply, {
    limits: options.limits,
    clock,
    heartbeat: options.heartbeat,
    ping: () => ({
      event: "ping",
      data: { timestamp: new Date(clock.now()).toISOString(), task_id: task.id },
    }),
    ...(options.headers !== undefined && { headers: options.headers }),
  });
  const feed = new DeltaFeed({
    runtime: mailroom.runtime,
    key: task.key,
    clock,
    // A reader that is slow loses only the text that the events repeat.
    isReady: () => !stream.isBehind,
    send: (pieces) => {
      for (const piece of pieces) {
        stream.offer({ event: "token", data: { task_id: task.id, ...tokenData(piece) } });
      }
    },
  });
  const unlisten = closing.listen(() => stream.close());
  const unwatch = options.revocations.watch(
    options.caller.principal,
    options.reply.request.headers.authorization,
    () => stream.close(),
  );
  try {
    if (stream.ended === undefined) await copy(options, stream, feed, from, goesOn);
  } finally {
    feed.close();
    unlisten();
    unwatch();
    stream.close();
  }
  return stream;
}

interface Position {
  readonly number: number;
  readonly index: number;
}

async function copy(
  { mailroom, task, end, memory, caller: { name } }: TaskStreamOptions,
  stream: SseStream,
  feed: DeltaFeed,
  from: Position,
  goesOn: boolean,
): Promise<void> {
  const round = end.kind === "outcome" ? new Round(end.start) : undefined;
  // The entry of the last event may have further events, and a round is followed from its message on.
  const start = end.kind === "outcome" ? Math.min(from.number, end.start.number) : from.number;
  const first = Math.max(0, start - 1);
  const { signal } = stream;
  const journal = mailroom.runtime.follow(task.key, {
    after: first,
    once: !goesOn,
    signal,
    isBehind: () => stream.isFull,
    place: () => memory.page(name, signal),
  });
  for await (const { number, entry } of journal) {
    feed.before(entry);
    const outcome: RoundOutcome | undefined = round?.see(number, entry);
    for (const [index, event] of eventsOf(task.id, number, entry).entries()) {
      if (number < from.number || (number === from.number && index <= from.index)) continue;
      await memory.event(
        name,
        signal,
        () => formatEvent(event),
        (text) => stream.writeText(text),
      );
      if (end.kind === "round" && endsRound(event)) return;
    }
    if (outcome !== undefined) await stream.writeText(END_OF_ROUND);
    if (outcome !== undefined || stream.ended !== undefined) return;
  }
}

/** @throws MailroomError `bad_input` */
function startOf(after: string | undefined): Position {
  if (after === undefined) return { number: 0, index: Number.POSITIVE_INFINITY };
  const parsed = parseEventId(after);
  if (parsed === undefined) throw new MailroomError("bad_input", `'${after}' is not an event id`);
  return parsed;
}

async function isRunning(mailroom: Mailroom, key: JournalKey): Promise<boolean> {
  return (await mailroom.runtime.summary(key))?.status === "running";
}
