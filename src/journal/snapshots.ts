/** Snapshots: a header of the kernel's own, and the aggregate's parts, made one at a time. */
import { createHash } from "node:crypto";
import type { Loop, Snapshot, SnapshotPart } from "./ports.js";

/** Sorts before every part of an aggregate. */
const HEADER = "!";
const VERSION = 1;

interface Header {
  readonly v: number;
  /** Characters of the journal up to the snapshot's number. */
  readonly size: number;
}

export function snapshotHeader(size: number): SnapshotPart {
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
export function freezeInSteps(
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
export function digestOf(data: string): string {
  return createHash("sha256").update(data).digest("base64");
}
