/**
 * Asks other swarms about requests that they accepted and have not answered (decision E6). A swarm that has nothing left to
 * do for a task will not answer: the sender is notified at once instead of after the reply timeout. Only swarms that
 * offer the question are asked. Nothing is stored: after a restart, tasks that still wait are watched again.
 */
import { type Clock, isRecord, type Random, type Report } from "../../base/index.js";
import type { Runtime } from "../../engine/index.js";
import type { JournalKey } from "../../journal/index.js";
import { parseAgentAddress } from "../../mail/index.js";
import { type Guard, type HttpClient, NetError } from "../../net/index.js";
import type { SwarmRegistry } from "../registry/registry.js";
import type { FederationSettings } from "../settings.js";

/** Announced by servers that answer `GET /interswarm/tasks/{task_id}`. */
export const TASK_QUERY_CAPABILITY = "tasks";

/** Tasks that are watched at once. Others wait for their timeout. */
const MOST_WATCHED = 10_000;
const LARGEST_ANSWER = 64 * 1024;
const GROWTH = 1.5;
const LONGEST_PAUSE = 5 * 60_000;

export interface ReplyCheckParts {
  readonly runtime: Pick<Runtime, "read" | "command">;
  readonly registry: SwarmRegistry;
  readonly client: HttpClient;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: Pick<FederationSettings, "askInterval" | "healthTimeout">;
  readonly report: Report;
}

export class ReplyChecks {
  readonly #parts: ReplyCheckParts;
  readonly #watched = new Map<string, () => void>();
  readonly #stop = new AbortController();

  constructor(parts: ReplyCheckParts) {
    this.#parts = parts;
  }

  /** The swarm accepted a message of the task. */
  accepted(key: JournalKey, swarm: string): void {
    const { settings } = this.#parts;
    if (settings.askInterval === 0 || this.#watched.has(`${key}/${swarm}`)) return;
    if (this.#watched.size < MOST_WATCHED) this.#arm(key, swarm, settings.askInterval);
  }

  stop(): void {
    this.#stop.abort();
    for (const cancel of this.#watched.values()) cancel();
    this.#watched.clear();
  }

  #arm(key: JournalKey, swarm: string, pause: number): void {
    const { clock, random } = this.#parts;
    const jittered = pause * (0.75 + random() / 2);
    const cancel = clock.after(jittered, () => void this.#check(key, swarm, pause));
    this.#watched.set(`${key}/${swarm}`, cancel);
  }

  async #check(key: JournalKey, swarm: string, pause: number): Promise<void> {
    try {
      const open = await this.#openRequests(key, swarm);
      if (open === undefined || this.#stop.signal.aborted) {
        this.#watched.delete(`${key}/${swarm}`);
        return;
      }
      if (await this.#isBusy(swarm, open.taskId)) {
        this.#arm(key, swarm, Math.min(LONGEST_PAUSE, pause * GROWTH));
        return;
      }
      this.#watched.delete(`${key}/${swarm}`);
      const { requestIds } = open;
      await this.#parts.runtime.command(key, { type: "no_reply", swarm, requestIds });
    } catch (cause) {
      if (this.#stop.signal.aborted) return;
      if (!(cause instanceof NetError)) {
        const message = `asking swarm '${swarm}' about an unanswered request failed`;
        this.#parts.report({ code: "reply_check", message, task: key, cause });
      }
      this.#arm(key, swarm, Math.min(LONGEST_PAUSE, pause * GROWTH));
    }
  }

  /** Requests that the swarm accepted before now; nothing if the task does not wait for it. */
  async #openRequests(
    key: JournalKey,
    swarm: string,
  ): Promise<{ readonly taskId: string; readonly requestIds: readonly string[] } | undefined> {
    return this.#parts.runtime.read(key, ({ status, taskId, outstanding }) => {
      const requestIds = outstanding
        .filter(({ to, acceptedAt }) => acceptedAt !== undefined && parseAgentAddress(to).swarm === swarm)
        .map(({ requestId }) => requestId);
      return status !== "running" || requestIds.length === 0 ? undefined : { taskId, requestIds };
    });
  }

  /** An unclear answer counts as busy. A swarm that does not know the task is not. */
  async #isBusy(swarm: string, taskId: string): Promise<boolean> {
    const { registry, client, guard, settings } = this.#parts;
    const entry = registry.get(swarm);
    const token = registry.tokenOf(swarm);
    if (entry?.capabilities.includes(TASK_QUERY_CAPABILITY) !== true || token.kind !== "ready") return true;
    const url = `${entry.baseUrl}/interswarm/tasks/${encodeURIComponent(taskId)}`;
    const { status, text } = await client.request(url, {
      method: "GET",
      headers: { accept: "application/json", authorization: `Bearer ${token.token}` },
      timeLimit: settings.healthTimeout,
      maxBytes: LARGEST_ANSWER,
      guard,
      signal: this.#stop.signal,
    });
    const body = status === 200 || status === 404 ? parse(text()) : undefined;
    if (status === 404) return !(isRecord(body) && body.code === "unknown_task");
    return !(isRecord(body) && body.busy === false);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
