/** Figures of the tasks that are in view, asked for in batches and kept as long as they are true. */
import { signal } from "@preact/signals";
import { isAdmin, request } from "./api.js";
import type { TaskDigest } from "./shapes.js";

const BATCH = 50;
const MOST_KEPT = 2_000;
const PAUSE = 120;

interface Wanted {
  readonly id: string;
  readonly number: number;
}

const kept = new Map<string, TaskDigest>();
const wanted = new Map<string, Wanted>();
const asked = new Map<string, number>();
let timer: number | undefined;
let asking = false;

/** Rises when digests have arrived. */
export const digestVersion = signal(0);

/** Asks for a digest unless the known one is as new as `number`. */
export function wantDigest(key: string, id: string, number: number): TaskDigest | undefined {
  const known = kept.get(key);
  if (known !== undefined && (known.number >= number || known.partial === true)) return known;
  if ((asked.get(key) ?? -1) >= number) return known;
  wanted.set(key, { id, number });
  askSoon();
  return known;
}

/** What is known already, however old. */
export function knownDigest(key: string): TaskDigest | undefined {
  return kept.get(key);
}

/** Agents of the tasks that were looked at. */
export function knownAgents(): string[] {
  const names = new Set<string>();
  for (const { agents, others = [] } of kept.values())
    for (const name of [...agents, ...others]) names.add(name);
  return [...names].sort();
}

async function ask(): Promise<void> {
  timer = undefined;
  if (asking || wanted.size === 0) return;
  asking = true;
  // The last rows that came into view are the ones that are looked at.
  const batch = [...wanted].slice(-BATCH);
  for (const [key, { number }] of batch) {
    wanted.delete(key);
    asked.set(key, number);
  }
  try {
    const { digests } = isAdmin()
      ? await request<{ digests: TaskDigest[] }>("admin/tasks/digest", {
          body: { keys: batch.map(([key]) => key) },
        })
      : await request<{ digests: TaskDigest[] }>("tasks/digest", {
          body: { tasks: batch.map(([, { id }]) => id) },
        });
    for (const digest of digests) {
      kept.delete(digest.key);
      kept.set(digest.key, digest);
    }
    for (const key of kept.keys()) {
      if (kept.size <= MOST_KEPT) break;
      kept.delete(key);
    }
    if (digests.length > 0) digestVersion.value++;
  } catch {
    for (const [key] of batch) asked.delete(key);
  }
  asking = false;
  if (wanted.size > 0) askSoon();
}

function askSoon(): void {
  if (timer === undefined) timer = window.setTimeout(() => void ask(), PAUSE);
}
