/** Snapshots: a header of the kernel's own, and the aggregate's parts, made one at a time. */
import { createHash } from "node:crypto";
import type { Types } from "./aggregate.js";
import { asError } from "./errors.js";
import type { KernelParts } from "./kernel-parts.js";
import type { Live } from "./live.js";
import type { Loop, Snapshot, SnapshotPart } from "./ports.js";
import type { Writer } from "./writer.js";

/** Sorts before every part of an aggregate. */
const HEADER = "!";
const VERSION = 1;

interface Header {
  readonly v: number;
  /** Characters of the journal up to the snapshot's number. */
  readonly size: number;
}

function snapshotHeader(size: number): SnapshotPart {
  return { name: HEADER, data: JSON.stringify({ v: VERSION, size } satisfies Header) };
}

export function isSnapshotHeader({ name }: SnapshotPart): boolean {
  return name === HEADER;
}

/** Nothing if the snapshot is of another version. */
export function readHeader({ parts }: Snapshot): Header | undefined {
  const part = parts.find(isSnapshotHeader);
  if (part === undefined) return undefined;
  const header: Header = JSON.parse(part.data);
  return header.v === VERSION && Number.isSafeInteger(header.size) ? header : undefined;
}

/** Makes each part in a turn of the event loop of its own. */
function freezeInSteps(
  parts: Iterable<SnapshotPart>,
  loop: Loop,
  done: (parts: readonly SnapshotPart[] | undefined, error?: unknown) => void,
): void {
  const iterator = parts[Symbol.iterator]();
  const made: SnapshotPart[] = [];
  const step = (): void => {
    try {
      const next = iterator.next();
      if (next.done === true) return done(made);
      made.push(next.value);
    } catch (error) {
      return done(undefined, error);
    }
    loop.soon(step);
  };
  step();
}

/** Tells whether a part has changed without keeping the part. */
function digestOf(data: string): string {
  return createHash("sha256").update(data).digest("base64");
}

/** Part by part, so that the event loop does other work in between. The state must not change meanwhile. */
export function writeSnapshot<T extends Types>(
  { aggregate, loop, report }: KernelParts<T>,
  writer: Writer,
  live: Live<T>,
  done?: () => void,
): void {
  if (aggregate.freeze === undefined) return done?.();
  const number = live.durable;
  const fail = (cause: unknown) => {
    // The next attempt follows when the journal has grown as much again, not at every entry.
    live.snapshotAt = number;
    report({ code: "snapshot_failed", message: asError(cause).message, task: live.key, cause });
    done?.();
  };
  freezeInSteps(aggregate.freeze(live.state), loop, (parts, error) => {
    if (parts === undefined) return fail(error);
    const all: SnapshotPart[] = [snapshotHeader(live.size), ...parts];
    const known = live.snapshotParts;
    const digests = new Map(all.map(({ name, data }) => [name, digestOf(data)]));
    const isKept = ({ name }: SnapshotPart) => known !== undefined && known.get(name) === digests.get(name);
    const changed = all.filter((part) => !isKept(part));
    const kept = all.filter(isKept).map(({ name }) => name);
    live.snapshotAt = number;
    live.snapshotParts = digests;
    const row = { kind: "snapshot.put", journal: live.key, number, parts: changed, kept };
    writer.push({
      appends: [],
      rows: [row],
      durable: () => {},
      // The journal was removed, or the store is closed: a snapshot is never missed.
      refused: () => {
        live.snapshotParts = undefined;
      },
    });
    done?.();
  });
}
