/**
 * Copies the events of swarms that work on a task into its journal while a client watches the task, each event once
 * (decision E7). For swarms without event streams, only sent and received messages are visible.
 */
import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { Clock } from "../../base/index.js";
import {
  exceedsDepth,
  hasCode,
  isRecord,
  MAX_JSON_DEPTH,
  ownValue,
  type Random,
  type RetryPolicy,
  retryDelay,
  sleep,
} from "../../base/index.js";
import {
  ALL_TASKS_CHANNEL,
  isCommitNotification,
  isWatchNotification,
  type Runtime,
  WATCH_CHANNEL,
} from "../../engine/index.js";
import type { Bus, JournalKey } from "../../journal/index.js";
import { parseTaskContributor } from "../../mail/index.js";

import type { Guard, HttpClient } from "../../net/index.js";
import type { SwarmRegistry } from "../registry/registry.js";

export interface CopierParts {
  readonly runtime: Runtime;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly registry: SwarmRegistry;
  /** Needs MOST_STREAMS connections, which stay open; mail and health checks use another client. */
  readonly client: HttpClient;
  readonly random: Random;
  readonly guard: Guard;
  readonly local: () => string;
}

/** Concurrent streams, in total and to one swarm. Tasks beyond the limit show only sent and received messages. */
export const MOST_STREAMS = 256;
const MOST_TO_ONE_SWARM = 64;
const RECONNECT: RetryPolicy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0.5 };
/** A stream without data or heartbeat for this long is dead. */
const SILENCE = 60_000;
const LARGEST_EVENT = 1024 * 1024;
/** Events that passed through this many swarms are not copied. */
const DEEPEST = 4;

interface Watched {
  watchers: number;
  readonly streams: Map<string, Stream>;
}

interface Stream {
  readonly stop: AbortController;
  /** The last status event said that the task has ended remotely. */
  ended: boolean;
  /** Consecutive breaks without an event. */
  failures: number;
}

interface RemoteEvent {
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export class EventCopier {
  readonly #parts: CopierParts;
  readonly #watched = new Map<JournalKey, Watched>();
  readonly #unsubscribe: (() => void)[] = [];
  /** Open streams per swarm. */
  readonly #open = new Map<string, number>();

  constructor(parts: CopierParts) {
    this.#parts = parts;
  }

  start(): void {
    const { bus, registry } = this.#parts;
    const subscriptions = [
      bus.subscribe(WATCH_CHANNEL, (note) => {
        if (isWatchNotification(note)) this.#watch(note.key, note.watching ? 1 : -1);
      }),
      bus.subscribe(ALL_TASKS_CHANNEL, (note) => {
        if (!isCommitNotification(note) || !this.#watched.has(note.key)) return;
        // Another swarm accepted mail and may emit events now.
        if (note.entries.some((entry) => entry.t === "carried" && entry.ok)) this.#follow(note.key);
      }),
    ];
    this.#unsubscribe.push(
      ...subscriptions.map((subscription) => () => subscription.close()),
      // An unregistered swarm may not add events.
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

  /** Opens a stream to every swarm that the task asked and that offers events. */
  async #follow(key: JournalKey): Promise<void> {
    const { runtime, registry } = this.#parts;
    const task = await runtime
      .read(key, (state) => {
        // Only downstream: the swarm that asked watches this one, and events must not loop.
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
      // The accepted mail may resume the task there.
      if (known !== undefined) known.ended = false;
      if (!offers || known !== undefined || !this.#hasCapacity(swarm)) continue;
      const stream: Stream = { stop: new AbortController(), ended: false, failures: 0 };
      watched.streams.set(swarm, stream);
      this.#count(swarm, 1);
      this.#copyWhileWatched(key, task.id, swarm, stream).finally(() => {
        this.#count(swarm, -1);
        if (watched.streams.get(swarm) === stream) watched.streams.delete(swarm);
      });
    }
  }

  #hasCapacity(swarm: string): boolean {
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
        // The task was removed, or the server is closing; other errors are retried.
        if (hasCode(error, "unknown_task", "closed")) return;
      }
      // No more events will come; only new mail from here can resume the task there.
      if (stream.ended) return;
      stream.failures += 1;
      const { clock, random } = this.#parts;
      await sleep(clock, retryDelay(RECONNECT, stream.failures, random), stop).catch(() => {});
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

/** Returns whether the task has ended after these events; undefined if they contain no status. */
function haveEnded(events: readonly RemoteEvent[]): boolean | undefined {
  const status = events.findLast(({ data }) => data.status !== undefined)?.data.status;
  return status === undefined ? undefined : status !== "running" && status !== "paused";
}

/**
 * Returns undefined for heartbeats and partial text (no id), for events that came from here, and for events that
 * cannot be stored.
 */
function readEvent({ id, event, data }: EventSourceMessage, local: string): RemoteEvent | undefined {
  if (id === undefined || id === "" || event === undefined) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (!isRecord(parsed) || exceedsDepth(parsed, MAX_JSON_DEPTH)) return undefined;
  const through = swarmsIn(event, parsed);
  if (through.includes(local) || through.length >= DEEPEST) return undefined;
  return { id, event, data: parsed };
}

/** Returns the swarms that an event was copied through, outermost first. */
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
