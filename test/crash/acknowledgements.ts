/** The acknowledgments that the child received, written to its standard output as one JSON line each. */
import { writeSync } from "node:fs";
import { isRecord } from "../../src/base/index.js";
import type { TaskStatus } from "../../src/engine/ports.js";

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
  /** Breakpoint calls were answered; `number` is the first entry of the answer. */
  | {
      readonly ack: "answered";
      readonly key: string;
      readonly number: number;
      readonly calls: readonly string[];
    }
  /** A call that waited for approval was decided; `number` is the first entry of the decision. */
  | {
      readonly ack: "decided";
      readonly key: string;
      readonly number: number;
      readonly call: string;
      readonly decision: "approve" | "reject";
    }
  | { readonly ack: "cancelled"; readonly key: string }
  /** A caller that waited for a round was rejected, because the store had failed. */
  | { readonly ack: "turned away"; readonly key: string; readonly message: string }
  /** The store has failed, and the mailroom has closed itself. */
  | { readonly ack: "failed" }
  | { readonly ack: "problem"; readonly code: string; readonly message: string; readonly task?: string }
  /** All mail that waited at the start has been taken: every recovered turn made progress. */
  | { readonly ack: "caught up" }
  | { readonly ack: "done" };

export function say(acknowledgement: Acknowledgement): void {
  // Synchronous, so that the line has left this process before it can be killed.
  writeSync(1, `${JSON.stringify(acknowledgement)}\n`);
}

/** Ignores a line that the kill cut in half. */
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
