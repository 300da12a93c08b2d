/** How far the runtime is on its way from open to ended, and what it still accepts. */
import { MailroomError } from "../../base/index.js";
import type { Writer } from "../../journal/index.js";
import { closed } from "./errors.js";

export type Phase = "open" | "closing" | "closed" | "failed";

export class RuntimePhase {
  readonly #writer: Writer;
  current: Phase = "open";
  /** The grace period has passed: unfinished work is left to the next process. */
  parking = false;

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  get isOpen(): boolean {
    return this.current === "open";
  }

  /** Why nothing continues here, if the store has failed for good. */
  get failure(): MailroomError | undefined {
    return this.#writer.failure;
  }

  assertOpen(): void {
    if (this.isOpen) return;
    this.assertNotEnded();
    throw new MailroomError("closed", "the mailroom is closing");
  }

  /** Results of running turns and actions are accepted until the end. */
  assertNotEnded(): void {
    const { failure } = this;
    if (failure !== undefined) throw failure;
    if (this.current === "closed") throw closed();
  }
}
