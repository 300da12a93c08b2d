/**
 * Decisions E7: while somebody watches a task live, what the swarms that were asked do for it is copied into its journal,
 * each event once. Swarms that do not offer their events show only what was sent and received.
 */
import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { Bus, Clock, JournalKey } from "../../engine/ports.js";
import {
  ALL_TASKS_CHANNEL,
  isCommitNote,
  isWatchNote,
  type Runtime,
  RuntimeError,
  WATCH_CHANNEL,
} from "../../engine/runtime/index.js";
import { DEEPEST_JSON, isDeeperThan } from "../../mail/depth.js";
import { parseTaskContributor } from "../../mail/owner.js";
import { isRecord, ownValue } from "../../mail/record.js";
import {
  type BackoffPolicy,
  backoffDelay,
  type Guard,
  type HttpClient,
  pauseFor,
  type Random,
} from "../../net/index.js";
import type { SwarmRegistry } from "../registry/registry.js";

export interface CopierParts {
  readonly runtime: Runtime;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly registry: SwarmRegistry;
  /** With room for MOST_STREAMS connections, which stay open: mail and checks need connections of their own. */
  readonly client: HttpClient;
  readonly random: Random;
  readonly guard: Guard;
  readonly local: () => string;
}

/** Streams to other swarms at once, in all and to one; tasks beyond that show what was sent and received. */
export const MOST_STREAMS = 256;
const MOST_TO_ONE_SWARM = 64;
const RECONNECT: BackoffPolicy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0.5 };
/** A stream that is silent for so long, without even a heartbeat, is dead. */
const SILENCE = 60_000;
const LARGEST_EVENT = 1024 * 1024;
/** Events that went through this many swarms are not copied on. */
const DEEPEST = 4;

interface Watched {
  watchers: number;
  readonly streams: Map<string, Stream>;
}

interface Stream {
  readonly stop: AbortController;
  /** The last that was heard of its status is that the task has ended over there. */
  ended: boolean;
  /** Broken off in a row without an event. */
  failures: number;
}

interface RemoteEvent {
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export class StreamCopier {
  readonly #parts: CopierParts;
  readonly #watched = new Map<JournalKey, Watched>();
  readonly #unsubscribe: (() => void)[] = [];
  /** How many go to each swarm. */
  readonly #open = new Map<string, number>();

  constructor(parts: CopierParts) {
    this.#parts = parts;
  }

  start(): void {
    const { bus, registry } = this.#parts;
    this.#unsubscribe.push(
      bus.subscribe(WATCH_CHANNEL, (note) => {
        if (isWatchNote(note)) this.#watch(note.key, note.watching ? 1 : -1);
      }),
      bus.subscribe(ALL_TASKS_CHANNEL, (note) => {
        if (!isCommitNote(note) || !this.#watched.has(note.key)) return;
        // Another swarm has just taken something over: there may be something to see.
        if (note.entries.some((entry) => entry.t === "carried" && entry.ok)) this.#follow(note.key);
      }),
      // A swarm that is not known any more has nothing to say about our tasks.
      registry.onChange((swarm) => {
        if (registry.has(swarm)) return;
        for (const { streams } of this.#watched.values()) streams.get(swarm)?.stop.abort();
      }),
    );
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    for (const key of [...this.#watched.keys()]) this.#leave(key);
  }

  #watch(key: JournalKey, change: 1 | -1): void {
    const watched = this.#watched.get(key);
    if (watched === undefined) {
      if (change < 0) return;
      this.#watched.set(key, { watchers: 1, streams: new Map() });
      this.#follow(key);
      return;
    }
    watched.watchers += change;
    if (watched.watchers <= 0) this.#leave(key);
  }

  #leave(key: JournalKey): void {
    for (const { stop } of this.#watched.get(key)?.streams.values() ?? []) stop.abort();
    this.#watched.delete(key);
  }

  /** Opens a stream to every swarm that was asked and offers its events. */
  async #follow(key: JournalKey): Promise<void> {
    const { runtime, registry } = this.#parts;
    const task = await runtime
      .read(key, (state) => {
        // Only downstream: who asked us is watching us, and events must not go round in circles.
        const upstream = new Set([parseTaskContributor(state.owner).swarm]);
        if (state.instance.role === "swarm") upstream.add(state.instance.id);
        return { id: state.taskId, swarms: state.remoteSwarms.filter((swarm) => !upstream.has(swarm)) };
      })
      .catch(() => undefined);
    const watched = this.#watched.get(key);
    if (task === undefined || watched === undefined) return;
    for (const swarm of task.swarms) {
      const offers = registry.get(swarm)?.capabilities.includes("events") === true;
      const known = watched.streams.get(swarm);
      // What was just taken over there may make it go on.
      if (known !== undefined) known.ended = false;
      if (!offers || known !== undefined || !this.#hasRoomFor(swarm)) continue;
      const stream: Stream = { stop: new AbortController(), ended: false, failures: 0 };
      watched.streams.set(swarm, stream);
      this.#count(swarm, 1);
      this.#copyWhileWatched(key, task.id, swarm, stream).finally(() => {
        this.#count(swarm, -1);
        if (watched.streams.get(swarm) === stream) watched.streams.delete(swarm);
      });
    }
  }

  #hasRoomFor(swarm: string): boolean {
    let all = 0;
    for (const open of this.#open.values()) all += open;
    return all < MOST_STREAMS && (this.#open.get(swarm) ?? 0) < MOST_TO_ONE_SWARM;
  }

  #count(swarm: string, change: 1 | -1): void {
    const open = (this.#open.get(swarm) ?? 0) + change;
    if (open > 0) this.#open.set(swarm, open);
    else this.#open.delete(swarm);
  }

  async #copyWhileWatched(key: JournalKey, taskId: string, swarm: string, stream: Stream): Promise<void> {
    const stop = stream.stop.signal;
    while (!stop.aborted) {
      try {
        if ((await this.#copy(key, taskId, swarm, stream)) === "refused") return;
      } catch (error) {
        // The task is gone, or we are closing; anything else is tried again.
        if (error instanceof RuntimeError && (error.code === "unknown_task" || error.code === "closed"))
          return;
      }
      // There is nothing to come; if the task goes on there, it is because of something that we send.
      if (stream.ended) return;
      stream.failures += 1;
      if (!stop.aborted)
        await pauseFor(this.#parts.clock, backoffDelay(RECONNECT, stream.failures, this.#parts.random), stop);
    }
  }

  async #copy(
    key: JournalKey,
    taskId: string,
    swarm: string,
    progress: Stream,
  ): Promise<"refused" | "ended"> {
    const { registry, client, guard, runtime } = this.#parts;
    const entry = registry.get(swarm);
    const token = registry.tokenOf(swarm);
    if (entry === undefined || token.kind !== "ready") return "refused";
    const seen = await runtime.read(key, (state) => ownValue(state.copied, swarm));
    const after = seen === undefined ? "" : `?after=${encodeURIComponent(seen)}`;
    const url = `${entry.baseUrl}/interswarm/tasks/${encodeURIComponent(taskId)}/events${after}`;
    const stream = await client.open(url, {
      guard,
      signal: progress.stop.signal,
      idleLimit: SILENCE,
      headers: { accept: "text/event-stream", authorization: `Bearer ${token.token}` },
    });
    if (stream.status !== 200) {
      stream.close();
      return stream.status < 500 ? "refused" : "ended";
    }
    const batch: RemoteEvent[] = [];
    let waiting = 0;
    const parser = createParser({
      onEvent: (message) => {
        const event = readEvent(message, this.#parts.local());
        if (event !== undefined) batch.push(event);
      },
    });
    const decoder = new TextDecoder();
    for await (const part of stream.body) {
      const text = decoder.decode(part, { stream: true });
      waiting += text.length;
      parser.feed(text);
      if (batch.length > 0) {
        waiting = 0;
        const events = batch.splice(0);
        await runtime.command(key, { type: "copy_events", swarm, events });
        progress.failures = 0;
        progress.ended = haveEnded(events) ?? progress.ended;
      }
      if (waiting > LARGEST_EVENT) {
        stream.close();
        return "refused";
      }
    }
    return "ended";
  }
}

/** Whether the task has ended with these events or goes on; nothing if they do not say. */
function haveEnded(events: readonly RemoteEvent[]): boolean | undefined {
  const status = events.findLast(({ data }) => data.status !== undefined)?.data.status;
  return status === undefined ? undefined : status !== "running" && status !== "paused";
}

/** Nothing for heartbeats and unfinished text, which have no id, for what has come from here, and for what cannot be kept. */
function readEvent({ id, event, data }: EventSourceMessage, local: string): RemoteEvent | undefined {
  if (id === undefined || id === "" || event === undefined) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (!isRecord(parsed) || isDeeperThan(DEEPEST_JSON, parsed)) return undefined;
  const through = swarmsIn(event, parsed);
  if (through.includes(local) || through.length >= DEEPEST) return undefined;
  return { id, event, data: parsed };
}

/** The swarms that an event was copied from, the outermost first. */
function swarmsIn(event: string, data: unknown): string[] {
  const swarms: string[] = [];
  let name: unknown = event;
  let content: unknown = data;
  while (name === "interswarm_event" && isRecord(content) && isRecord(content.extra_data)) {
    const extra: Readonly<Record<string, unknown>> = content.extra_data;
    if (typeof extra.swarm === "string") swarms.push(extra.swarm);
    name = extra.event;
    content = extra.data;
  }
  return swarms;
}
