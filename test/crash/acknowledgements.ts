/** What the child says on its standard output, one JSON line each, after it was told so itself. */
import { writeSync } from "node:fs";
import type { TaskStatus } from "../../src/engine/ports.js";
import { isRecord } from "../../src/mail/record.js";

export type Acknowledgement =
  | { readonly ack: "ready"; readonly recovered: number }
  /** A message is durable. */
  | { readonly ack: "post"; readonly key: string; readonly message: string; readonly number: number }
  /** A round has ended; `ending` is the id of the message that ended it. */
  | {
      readonly ack: "outcome";
      readonly key: string;
      readonly message: string;
      readonly status: TaskStatus;
      readonly ending: string;
    }
  /** Breakpoint calls were answered; `number` is that of the first entry that says so. */
  | {
      readonly ack: "answered";
      readonly key: string;
      readonly number: number;
      readonly calls: readonly string[];
    }
  | { readonly ack: "cancelled"; readonly key: string }
  /** Somebody who waited for a round was told to go, because the store had failed. */
  | { readonly ack: "turned away"; readonly key: string; readonly message: string }
  /** The store has failed, and the mailroom has closed itself. */
  | { readonly ack: "failed" }
  | { readonly ack: "problem"; readonly code: string; readonly message: string; readonly task?: string }
  /** Mail that waited when it was opened has been taken: every recovered turn got somewhere. */
  | { readonly ack: "caught up" }
  | { readonly ack: "done" };

export function say(acknowledgement: Acknowledgement): void {
  // Synchronous: what was said is out of this process, whatever happens to it next.
  writeSync(1, `${JSON.stringify(acknowledgement)}\n`);
}

/** A line that the kill cut in half says nothing. */
export function heard(line: string): Acknowledgement | undefined {
  try {
    const said: unknown = JSON.parse(line);
    return isAcknowledgement(said) ? said : undefined;
  } catch {
    return undefined;
  }
}

function isAcknowledgement(value: unknown): value is Acknowledgement {
  return isRecord(value) && typeof value.ack === "string";
}
