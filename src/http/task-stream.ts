/** A task's journal as server-sent events: the same events as everywhere, in the order of the journal. */
import type { FastifyReply } from "fastify";
import type { Clock, JournalKey } from "../engine/ports.js";
import {
  type DeltaNote,
  deltaChannel,
  type Outcome,
  Round,
  type RoundStart,
  RuntimeError,
} from "../engine/runtime/index.js";
import { endsRound, eventsOf, parseEventId } from "../engine/view/events.js";
import type { Mailroom } from "../library/mailroom.js";
import type { Closing } from "./closing.js";
import type { Revocations } from "./revocations.js";
import type { Caller } from "./route.js";
import { type SseLimits, SseStream } from "./sse.js";

/** Where a stream stops by itself. */
export type StreamEnd =
  /** With what becomes of a message. */
  | { readonly kind: "outcome"; readonly start: RoundStart }
  /** With the first round that ends, or with the journal if the task does not run. */
  | { readonly kind: "round" }
  | { readonly kind: "never" };

export interface TaskStreamOptions {
  readonly mailroom: Mailroom;
  readonly reply: FastifyReply;
  readonly task: { readonly id: string; readonly key: JournalKey };
  /** Id of the last event that the listener has seen. */
  readonly after: string | undefined;
  readonly end: StreamEnd;
  readonly heartbeat: number;
  readonly limits: SseLimits;
  readonly clock: Clock;
  readonly headers?: Readonly<Record<string, string>>;
  /** The server is closing: the listener is let go and comes back. */
  readonly closing: Closing;
  readonly caller: Caller;
  readonly revocations: Revocations;
}

/** Resolves when the stream is over. The task never notices. */
export async function streamTask(options: TaskStreamOptions): Promise<SseStream> {
  const { mailroom, task, after, end, closing, clock } = options;
  const from = startOf(after);
  // Read before the head is sent: what cannot be read must still be an error with a status.
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
  const unsubscribe = mailroom.bus.subscribe(deltaChannel(task.key), (note) => {
    if (isDelta(note)) {
      const { agent, delta } = note;
      stream.writeNow({ event: "token", data: { task_id: task.id, agent, delta } });
    }
  });
  const unlisten = closing.listen(() => stream.close());
  const unwatch = options.revocations.watch(options.caller.principal, () => stream.close());
  try {
    if (stream.ended === undefined) await copy(options, stream, from, goesOn);
  } finally {
    unsubscribe();
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
  { mailroom, task, end }: TaskStreamOptions,
  stream: SseStream,
  from: Position,
  goesOn: boolean,
): Promise<void> {
  const round = end.kind === "outcome" ? new Round(end.start) : undefined;
  // The entry of the last event seen may have more of them.
  const first = Math.max(0, from.number - 1);
  const journal = mailroom.runtime.follow(task.key, { after: first, once: !goesOn, signal: stream.signal });
  for await (const { number, entry } of journal) {
    const outcome: Outcome | undefined = round?.see(number, entry);
    for (const [index, event] of eventsOf(task.id, number, entry).entries()) {
      if (number < from.number || (number === from.number && index <= from.index)) continue;
      await stream.write(event);
      if (end.kind === "round" && endsRound(event)) return;
    }
    if (outcome !== undefined || stream.ended !== undefined) return;
  }
}

/** @throws RuntimeError `bad_input` */
export function startOf(after: string | undefined): Position {
  if (after === undefined) return { number: 0, index: Number.POSITIVE_INFINITY };
  const parsed = parseEventId(after);
  if (parsed === undefined) throw new RuntimeError("bad_input", `'${after}' is not the id of an event`);
  return parsed;
}

async function isRunning(mailroom: Mailroom, key: JournalKey): Promise<boolean> {
  return (await mailroom.runtime.summary(key))?.status === "running";
}

function isDelta(note: unknown): note is DeltaNote {
  return typeof note === "object" && note !== null && "delta" in note && "agent" in note;
}
