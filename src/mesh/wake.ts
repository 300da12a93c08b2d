/** ASP: Wake Trigger. Tells a program of ours that there is mail: by a webhook, or by a command. */
import { spawn } from "node:child_process";
import { createHash, timingSafeEqual } from "node:crypto";
import type { HttpClient } from "../net/index.js";
import type { Problem } from "./core.js";
import type { QueuedMessage } from "./queue.js";

export interface WakeNote {
  readonly message_id: string;
  readonly swarm_id: string;
  readonly sender_id: string;
  readonly notification_level: "silent" | "normal" | "urgent";
}

/** `urgent` for what is for us alone and calls itself urgent: a hint, because priority is not signed. */
export function wakeNoteOf(message: QueuedMessage, selfId: string): WakeNote {
  const { priority }: { priority?: string } = JSON.parse(message.envelope);
  const urgent = message.recipientId === selfId && priority === "high";
  return {
    message_id: message.messageId,
    swarm_id: message.swarmId,
    sender_id: message.senderId,
    notification_level: urgent ? "urgent" : "normal",
  };
}

/** The signal says that nobody waits for it much longer. */
export type Waker = (note: WakeNote, signal?: AbortSignal) => Promise<void>;

export interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
  readonly http: HttpClient;
  /** Default 5 s. */
  readonly timeLimit?: number;
}

/** Posts the four fields with the shared secret. A dead URL is reported and costs nothing else. */
export function webhookWaker({ url, secret, http, timeLimit = 5_000 }: WebhookOptions): Waker {
  return async (note) => {
    const { status } = await http.request(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-wake-secret": secret },
      body: JSON.stringify(note),
      timeLimit,
      maxBytes: 64 * 1024,
    });
    if (status >= 400) throw new Error(`the wake URL answers ${status}`);
  };
}

export interface CommandOptions {
  /** Milliseconds that a program may run. Default 60 s. */
  readonly timeLimit?: number;
  /** Milliseconds between asking it to end and ending it, and before it is asked when we end ourselves. Default 5 s. */
  readonly grace?: number;
}

/**
 * Runs a program, without a shell. What came from others reaches it on its standard input only, as JSON: never as an
 * argument, a variable or keystrokes.
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
          // Whoever does not listen is not asked twice.
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
      // A program that does not read its input is not an error of ours.
      child.stdin.on("error", () => undefined);
      child.stdin.end(JSON.stringify(note));
    });
}

/** One at a time, a bounded number waiting; failures are reported and never reach the sender. */
export class WakeTrigger {
  readonly #waker: Waker;
  readonly #report: (problem: Problem) => void;
  readonly #waiting: WakeNote[] = [];
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;

  constructor(waker: Waker, report: (problem: Problem) => void) {
    this.#waker = waker;
    this.#report = report;
  }

  wake(note: WakeNote): void {
    if (this.#closing.signal.aborted) return;
    // Whoever wakes up reads the whole inbox: beyond this number one more wake-up says nothing new.
    if (this.#waiting.length < 100) this.#waiting.push(note);
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async quiet(): Promise<void> {
    await this.#running;
  }

  /** Lets the one that is under way come to its end, soon; those that wait are dropped, their messages are kept. */
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
        this.#report({ code: "mesh_wake_failed", message: `nobody was woken for ${note.message_id}`, cause });
      }
    }
  }
}

/** Constant in time: what an attacker measures tells nothing about the secret. */
export function sameSecret(given: string | undefined, secret: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return given !== undefined && timingSafeEqual(digest(given), digest(secret));
}
