/** Decides whether one more command fits: into the write queue, into a task, into the limit of running tasks. */
import type { Writer } from "../../journal/index.js";
import { toTaskError } from "./errors.js";
import type { RunningTaskLimits } from "./running-task-limits.js";
import type { LiveTask, TaskKernel } from "./task-work.js";

export interface AdmissionParts {
  readonly writer: Writer;
  readonly kernel: TaskKernel;
  readonly taskLimits: RunningTaskLimits;
}

export class Admission {
  readonly #parts: AdmissionParts;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  /** @throws MailroomError `store_busy` when the write queue cannot take this number of characters */
  assertQueueCapacity(characters: number): void {
    try {
      this.#parts.writer.admit(characters);
    } catch (error) {
      throw error instanceof Error ? toTaskError(error, "") : error;
    }
  }

  /** Called before every command of a caller that can make a task run. */
  assertCapacityIn(live: LiveTask): void {
    const { kernel, taskLimits } = this.#parts;
    try {
      kernel.assertCapacityIn(live.key);
    } catch (error) {
      throw error instanceof Error ? toTaskError(error, "") : error;
    }
    const { instanceKey } = live.work;
    if (live.state.status === "running") taskLimits.assertGrowth(instanceKey);
    else taskLimits.assertCapacity(instanceKey);
  }

  /** Called before a task is opened. */
  assertCapacityFor(instanceKey: string): void {
    this.#parts.taskLimits.assertCapacity(instanceKey);
  }
}
