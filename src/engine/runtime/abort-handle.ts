/**
 * Stops a turn or an action. The `AbortSignal` is created on first use: creating it costs more than everything else the
 * runtime does for a turn.
 */
import { MailroomError } from "../../base/index.js";

export type StopReason = "interrupt" | "cancelled" | "time_limit" | "task_time_limit" | "shutdown" | "lost";

/** The reason of the abort signal. */
export class StoppedError extends MailroomError<"stopped"> {
  override readonly name = "StoppedError";
  readonly reason: StopReason;
  constructor(reason: StopReason) {
    super("stopped", `stopped: ${reason.replaceAll("_", " ")}`);
    this.reason = reason;
  }
}

export class AbortHandle {
  #stopped: StoppedError | undefined;
  #controller: AbortController | undefined;
  #listener: ((stopped: StoppedError) => void) | undefined;

  get stopped(): StoppedError | undefined {
    return this.#stopped;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped);
    }
    return this.#controller.signal;
  }

  /** The first reason counts. */
  stop(reason: StopReason): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = new StoppedError(reason);
    this.#controller?.abort(this.#stopped);
    this.#listener?.(this.#stopped);
  }

  /** The promise's outcome, or the reason to stop, whichever is first. A later outcome is ignored. */
  race<T>(promise: Promise<T>): Promise<T | StoppedError> {
    return new Promise((resolve, reject) => {
      if (this.#stopped !== undefined) resolve(this.#stopped);
      this.#listener = resolve;
      promise.then(resolve, reject);
    });
  }
}
