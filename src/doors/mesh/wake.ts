/** ASP: Wake Trigger. Notifies a local program of new messages, by a webhook or by a command. */
import { spawn } from "node:child_process";
import type { Report } from "../../base/index.js";
import type { QueuedMessage } from "../../mesh/index.js";
import type { HttpClient } from "../../net/index.js";

export interface WakeNotification {
  readonly message_id: string;
  readonly swarm_id: string;
  readonly sender_id: string;
  readonly notification_level: "silent" | "normal" | "urgent";
}

/**
 * `urgent` if the message is addressed to this agent alone and has high priority. A hint, because priority is
 * unsigned.
 */
export function toWakeNotification(message: QueuedMessage, selfId: string): WakeNotification {
  const { priority }: { priority?: string } = JSON.parse(message.envelope);
  const urgent = message.recipientId === selfId && priority === "high";
  return {
    message_id: message.messageId,
    swarm_id: message.swarmId,
    sender_id: message.senderId,
    notification_level: urgent ? "urgent" : "normal",
  };
}

/** Runs one trigger. When the signal aborts, it has only a short time left. */
export type Waker = (note: WakeNotification, signal?: AbortSignal) => Promise<void>;

export interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
  readonly http: HttpClient;
  /** Default 5 s. */
  readonly timeLimit?: number;
}

/** Posts the four fields with the shared secret. An unreachable URL is reported and has no other effect. */
export function webhookWaker({ url, secret, http, timeLimit = 5_000 }: WebhookOptions): Waker {
  return async (note) => {
    const { status } = await http.request(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-wake-secret": secret },
      body: JSON.stringify(note),
      timeLimit,
      maxBytes: 64 * 1024,
    });
    if (status >= 400) throw new Error(`the wake URL responded with status ${status}`);
  };
}

export interface CommandOptions {
  /** Milliseconds that a program may run. Default 60 s. */
  readonly timeLimit?: number;
  /** Milliseconds between SIGTERM and SIGKILL, and before SIGTERM when the server shuts down. Default 5 s. */
  readonly grace?: number;
}

/**
 * Runs a program without a shell. Data from peers reaches it as JSON on standard input only, never as an argument or
 * an environment variable.
 */
export function commandWaker(
  argv: readonly [string, ...string[]],
  { timeLimit = 60_000, grace = 5_000 }: CommandOptions = {},
): Waker {
  const [program, ...args] = argv;
  return (note, signal) =>
    new Promise((resolve, reject) => {
      const child = spawn(program, args, { shell: false, stdio: ["pipe", "ignore", "ignore"] });
      const timers: NodeJS.Timeout[] = [];
      const endAfter = (ms: number): void => {
        timers.push(
          setTimeout(() => child.kill("SIGTERM"), ms),
          // A program that ignores SIGTERM is killed.
          setTimeout(() => child.kill("SIGKILL"), ms + grace),
        );
      };
      const hurry = (): void => endAfter(grace);
      const ended = (): void => {
        for (const timer of timers) clearTimeout(timer);
        signal?.removeEventListener("abort", hurry);
      };
      endAfter(timeLimit);
      signal?.addEventListener("abort", hurry);
      child.once("error", (error) => {
        ended();
        reject(error);
      });
      child.once("exit", (code, killedBy) => {
        ended();
        if (code === 0) resolve();
        else reject(new Error(`${program} ended with ${code ?? killedBy}`));
      });
      // A program may ignore its standard input.
      child.stdin.on("error", () => undefined);
      child.stdin.end(JSON.stringify(note));
    });
}

/** Runs one trigger at a time with a bounded queue. Failures are reported and never reach the sender of the message. */
export class WakeTrigger {
  readonly #waker: Waker;
  readonly #report: Report;
  readonly #waiting: WakeNotification[] = [];
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;

  constructor(waker: Waker, report: Report) {
    this.#waker = waker;
    this.#report = report;
  }

  wake(note: WakeNotification): void {
    if (this.#closing.signal.aborted) return;
    // A woken program reads the whole inbox, so more queued triggers would add nothing.
    if (this.#waiting.length < 100) this.#waiting.push(note);
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async quiet(): Promise<void> {
    await this.#running;
  }

  /** Waits briefly for the running trigger. Drops queued triggers; their messages remain in the inbox. */
  async close(): Promise<void> {
    this.#waiting.length = 0;
    this.#closing.abort();
    await this.quiet();
  }

  async #run(): Promise<void> {
    for (let note = this.#waiting.shift(); note !== undefined; note = this.#waiting.shift()) {
      try {
        await this.#waker(note, this.#closing.signal);
      } catch (cause) {
        this.#report({
          code: "mesh_wake_failed",
          message: `wake trigger failed for message ${note.message_id}`,
          cause,
        });
      }
    }
  }
}
