/**
 * The one stream of the page. It resumes where it stopped; a tab that nobody sees for a minute lets go of it. Events are
 * queued and handed on once per frame, whatever their number.
 */
import { signal } from "@preact/signals";
import { ApiError, caller, readOnly, send } from "./api.js";
import type { FeedEvents, Hello } from "./shapes.js";
import { eventsOf } from "./sse.js";

export type FeedState = "connecting" | "live" | "cut" | "asleep";

export const feedState = signal<FeedState>("connecting");
/** When the server was last there. */
export const lastSeen = signal<number | undefined>(undefined);
export const hello = signal<Hello | undefined>(undefined);
/** Commit position, where the server tells it. */
export const position = signal<string | undefined>(undefined);
/** The page was served by another version than the one that runs now. */
export const newerVersion = signal<string | undefined>(undefined);

declare const CONSOLE_VERSION: string;

type Name = keyof FeedEvents;
type Listener<N extends Name> = (data: FeedEvents[N]) => void;

const listeners: { readonly [N in Name]: Set<Listener<N>> } = {
  hello: new Set(),
  task: new Set(),
  entries: new Set(),
  token: new Set(),
  counts: new Set(),
  stats: new Set(),
  swarm: new Set(),
  removed: new Set(),
  reset: new Set(),
  ping: new Set(),
};

export function onFeed<N extends Name>(name: N, listener: Listener<N>): () => void {
  const known: Set<Listener<N>> = listeners[name];
  known.add(listener);
  return () => known.delete(listener);
}

const SILENCE = 40_000;
const HIDDEN = 60_000;
const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 10_000;

let cursor: string | undefined;
let watched: string | undefined;
let withStats = false;
let running: AbortController | undefined;
let pause = FIRST_PAUSE;
let retry: number | undefined;
let quiet: number | undefined;
let hiding: number | undefined;
let queue: (() => void)[] = [];
let scheduled = false;

function drain(): void {
  scheduled = false;
  const events = queue;
  queue = [];
  for (const tell of events) tell();
}

function isName(name: string): name is Name {
  return Object.hasOwn(listeners, name);
}

/** The data are what the server of this page's own version sends. */
function take<N extends Name>(name: N, text: string): void {
  const data: FeedEvents[N] = JSON.parse(text);
  const known: Set<Listener<N>> = listeners[name];
  queue.push(() => {
    for (const listener of known) listener(data);
  });
  if (scheduled) return;
  scheduled = true;
  // A hidden tab gets no frames.
  if (document.hidden) setTimeout(drain, 250);
  else requestAnimationFrame(drain);
}

function greet(data: Hello): void {
  hello.value = data;
  cursor ??= data.cursor;
  position.value = cursor;
  if (data.version !== CONSOLE_VERSION) newerVersion.value = data.version;
  feedState.value = "live";
  readOnly.value = undefined;
  pause = FIRST_PAUSE;
}

function alive(): void {
  lastSeen.value = Date.now();
  window.clearTimeout(quiet);
  quiet = window.setTimeout(() => running?.abort(), SILENCE);
}

async function connect(): Promise<void> {
  window.clearTimeout(retry);
  running?.abort();
  if (caller.value === null || caller.value === undefined) return;
  const mine = new AbortController();
  running = mine;
  if (feedState.value !== "cut") feedState.value = "connecting";
  try {
    const response = await send("feed", {
      accept: "text/event-stream",
      signal: mine.signal,
      query: { after: cursor, watch: watched, stats: withStats ? true : undefined },
    });
    if (response.body === null) throw new TypeError("the stream is empty");
    for await (const { event, id, data } of eventsOf(response.body)) {
      if (mine.signal.aborted) return;
      alive();
      if (event === "hello") greet(JSON.parse(data));
      if (isName(event)) take(event, data);
      if (id !== undefined) {
        cursor = id;
        position.value = id;
      }
    }
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return;
    if (error instanceof ApiError && error.status === 404 && running === mine && watched !== undefined) {
      // The task does not exist; its screen says so. The stream continues without it.
      watched = undefined;
      return void connect();
    }
    if (error instanceof ApiError && error.status === 400) cursor = undefined;
    if (error instanceof ApiError && error.retryAfter !== undefined) pause = error.retryAfter * 1_000;
  }
  if (running === mine) cut();
}

function cut(): void {
  window.clearTimeout(quiet);
  running = undefined;
  feedState.value = "cut";
  readOnly.value = "The server cannot be reached. What is shown stays; nothing can be sent until it is back.";
  retry = window.setTimeout(() => void connect(), pause * (0.75 + Math.random() / 2));
  pause = Math.min(pause * 2, LONGEST_PAUSE);
}

/** Follows a task besides, or none. What was committed before the stream says hello has to be read from the journal. */
export function watch(task: string | undefined): void {
  if (task === watched) return;
  watched = task;
  void connect();
}

export function wantStats(want: boolean): void {
  if (want === withStats) return;
  withStats = want;
  void connect();
}

/** Tries at once instead of after the pause. */
export function tryNow(): void {
  pause = FIRST_PAUSE;
  void connect();
}

export function startFeed(): void {
  caller.subscribe((who) => {
    if (who === undefined) return;
    if (who === null) {
      running?.abort();
      running = undefined;
      window.clearTimeout(retry);
      window.clearTimeout(quiet);
      cursor = undefined;
    } else void connect();
  });
  document.addEventListener("visibilitychange", () => {
    window.clearTimeout(hiding);
    if (document.hidden) {
      hiding = window.setTimeout(() => {
        const mine = running;
        running = undefined;
        mine?.abort();
        window.clearTimeout(retry);
        feedState.value = "asleep";
      }, HIDDEN);
    } else if (feedState.value === "asleep" || feedState.value === "cut") tryNow();
  });
  window.addEventListener("online", tryNow);
}
