/** Simulates the users of the swarm: they post, wait, approve, write again and cancel. All their state is in the store. */
import { setTimeout as delay } from "node:timers/promises";
import type { TaskStatus } from "../../src/engine/ports.js";
import type { PostReceipt } from "../../src/engine/runtime/index.js";
import type { ApprovalDecision } from "../../src/engine/task/commands.js";
import type { Entry } from "../../src/engine/task/entries.js";
import { askedCalls } from "../../src/engine/task/state.js";
import type { Instance } from "../../src/library/instance.js";
import type { Mailroom } from "../../src/library/mailroom.js";
import type { Task } from "../../src/library/task.js";
import { say } from "./acknowledgements.js";
import { type Plan, type PlanKind, randomPlan } from "./plans.js";
import type { Random } from "./random.js";

/** A task and its owner. */
interface Case {
  readonly person: Instance;
  readonly task: Task;
}

/** Tasks that are driven concurrently. */
const AT_ONCE = 16;

export class Driver {
  readonly #mailroom: Mailroom;
  readonly #random: Random;
  readonly #people: readonly [Instance, ...Instance[]];
  readonly #lookedAfter = new Set<Promise<void>>();
  #finishing = false;

  constructor(mailroom: Mailroom, random: Random) {
    this.#mailroom = mailroom;
    this.#random = random;
    this.#people = [mailroom.user("ann"), mailroom.user("ben"), mailroom.admin("ann")];
  }

  /** Runs until `finish` is requested. */
  async live(): Promise<void> {
    unlessOver(this.#catchUp().then(() => say({ ack: "caught up" })));
    await this.#takeUp();
    await this.#writeAgainToFinished();
    while (!this.#finishing) {
      while (this.#lookedAfter.size < AT_ONCE && !this.#finishing) {
        const person = this.#random.pick(this.#people);
        this.#lookAfter(this.#newTask(person));
        await delay(this.#random.whole(0, 3));
      }
      await Promise.race(this.#lookedAfter);
    }
  }

  /** Posts the message that ends the process, while other tasks are running. */
  async poison(): Promise<void> {
    const [person] = this.#people;
    const plan = (kind: PlanKind, nonce: number): Plan => ({ kind, nonce, think: 1, act: 5 });
    const posts: Promise<PostReceipt>[] = [];
    for (let nonce = 1; nonce <= 20; nonce += 1) {
      if (nonce === 10) posts.push(person.post(JSON.stringify(plan("poison", nonce)), { taskId: "poison" }));
      else posts.push(person.post(JSON.stringify(plan(this.#random.pick(["chain", "fan"]), nonce))));
    }
    for (const posted of posts) this.#acknowledge(await posted);
    await Promise.all(this.#lookedAfter);
  }

  /** Resolves when every task has ended and no ended task has running work. Loads no task for the check. */
  async finish(): Promise<void> {
    this.#finishing = true;
    await this.#takeUp();
    await Promise.all(this.#lookedAfter);
    const { tasks } = this.#mailroom.store;
    while ((await tasks.withWork("openWork", undefined, 1)).length > 0) await delay(5);
  }

  /** Resolves when all mail that waits in running tasks now has been taken or its task has ended. */
  async #catchUp(): Promise<void> {
    const { runtime, store } = this.#mailroom;
    const rows = await store.tasks.withStatus("running", undefined, 10_000);
    await Promise.all(
      rows.map(async ({ key }) => {
        const now = await runtime.read(key, ({ agents, status, number }) => ({
          waiting: [...agents].flatMap(([agent, { mailbox }]) =>
            mailbox.map((mail) => `${mail.number} ${agent}`),
          ),
          status,
          number,
        }));
        if (now === undefined || now.status !== "running") return;
        const waiting = new Set(now.waiting);
        if (waiting.size === 0) return;
        for await (const { entry } of runtime.follow(key, { after: now.number })) {
          if (isEnd(entry)) return;
          if (entry.t !== "turn" && entry.t !== "turn_failed") continue;
          for (const number of entry.took) waiting.delete(`${number} ${entry.agent}`);
          if (waiting.size === 0) return;
        }
      }),
    );
  }

  async #takeUp(): Promise<void> {
    for (const person of this.#people) {
      for (const status of ["running", "paused"] as const) {
        for (let cursor: string | undefined; ; ) {
          const page = await person.tasks({ status, ...(cursor !== undefined && { cursor }) });
          for (const { task_id } of page.tasks) {
            this.#lookAfter(caseOf(person, task_id));
          }
          cursor = page.nextCursor;
          if (cursor === undefined) break;
        }
      }
    }
  }

  /** Resumes tasks that an earlier process finished, loaded from the disk. */
  async #writeAgainToFinished(): Promise<void> {
    const person = this.#random.pick(this.#people);
    const status = this.#random.pick<TaskStatus>(["completed", "cancelled"]);
    const { tasks } = await person.tasks({ status, limit: 40 });
    for (const { task_id } of tasks) {
      if (!this.#random.chance(0.1)) continue;
      this.#lookAfter(
        caseOf(person, task_id).then(async (found) => {
          await this.#write(found);
          return found;
        }),
      );
    }
  }

  #lookAfter(opened: Promise<Case>): void {
    const care = unlessOver(opened.then((found) => this.#accompany(found))).finally(() =>
      this.#lookedAfter.delete(care),
    );
    this.#lookedAfter.add(care);
  }

  async #newTask(person: Instance): Promise<Case> {
    const random = this.#random;
    const plan = JSON.stringify(randomPlan(random));
    const taskId = `own-${process.pid}-${random.whole(1, 1_000_000_000)}`;
    const options = random.chance(0.3) ? { taskId } : {};
    const posted = await patiently(() => person.post(plan, options));
    this.#acknowledge(posted);
    const made: Case = { person, task: posted.task };
    const interference = random.next();
    if (interference > 0.24) return made;
    await delay(random.whole(0, 12));
    if (interference > 0.12) await this.#write(made, random.pick(["request", "interrupt"]));
    else await this.#cancel(made);
    return made;
  }

  /** Runs until the task has ended and no further message follows. */
  async #accompany(at: Case): Promise<void> {
    for (;;) {
      const status = await this.#standstill(at);
      if (!this.#finishing) await delay(this.#random.whole(0, 5));
      if (status === "paused") await this.#approve(at);
      else if (!this.#finishing && this.#random.chance(0.35)) await this.#write(at);
      else return;
    }
  }

  /** Waits until the task does not run, starting from its stored status. */
  async #standstill({ task }: Case): Promise<TaskStatus> {
    for (;;) {
      const now = await this.#mailroom.runtime.read(task.key, ({ status, number }) => ({ status, number }));
      if (now === undefined) throw new Error(`task ${task.key} is gone`);
      if (now.status !== "running") return now.status;
      for await (const { entry } of task.journal({ after: now.number, live: true })) {
        if (isEnd(entry)) break;
      }
    }
  }

  async #write({ person, task }: Case, type: "request" | "interrupt" = "request"): Promise<void> {
    const plan = JSON.stringify(randomPlan(this.#random));
    this.#acknowledge(await patiently(() => person.post(plan, { taskId: task.id, type })));
  }

  #acknowledge({ key, messageId: message, number, outcome }: PostReceipt): void {
    say({ ack: "post", key, message, number });
    outcome.then(
      ({ status, message: ending }) => say({ ack: "outcome", key, message, status, ending: ending.id }),
      (error: unknown) =>
        codeOf(error) === "store_failed"
          ? say({ ack: "turned away", key, message })
          : say({ ack: "problem", code: "outcome", message: String(error), task: key }),
    );
  }

  /** Usually answers the calls; sometimes posts a message instead. */
  async #approve(at: Case): Promise<void> {
    if (!this.#finishing && this.#random.chance(0.2)) return this.#write(at);
    const { person, task } = at;
    const asked = (await this.#mailroom.runtime.read(task.key, askedCalls)) ?? [];
    if (asked.length > 0) return this.#decide(task, asked[0]?.call.id ?? "");
    const calls = await this.#mailroom.runtime.read(task.key, ({ agents }) =>
      [...agents.values()].flatMap(({ open }) => open.map((call) => call.id)),
    );
    const results = (calls ?? []).map((callId) => ({ callId, content: `approved ${callId}` }));
    try {
      const { number } = await patiently(() =>
        this.#mailroom.runtime.answerBreakpoint(person.id, task.id, { results }),
      );
      say({ ack: "answered", key: task.key, number, calls: results.map(({ callId }) => callId) });
    } catch (error) {
      // Another agent reached a breakpoint, or the task was cancelled, while the answer was written.
      const expected = ["missing_results", "not_paused", "unknown_calls", "approval_needed"];
      if (!isRefusal(error, ...expected)) throw error;
    }
  }

  /** Decides one call that waits for approval: mostly it may run. */
  async #decide(task: Task, callId: string): Promise<void> {
    const decision: ApprovalDecision = this.#random.chance(0.8)
      ? { callId, decision: "approve" }
      : { callId, decision: "reject", reason: "not today" };
    try {
      const { number } = await patiently(() => task.decideLater([decision]));
      say({ ack: "decided", key: task.key, number, call: callId, decision: decision.decision });
    } catch (error) {
      if (!isRefusal(error, "not_paused", "unknown_calls")) throw error;
    }
  }

  async #cancel({ task }: Case): Promise<void> {
    try {
      await patiently(() => task.cancel());
      say({ ack: "cancelled", key: task.key });
    } catch (error) {
      if (!isRefusal(error, "already_ended")) throw error;
    }
  }
}

function isEnd({ t }: Entry): boolean {
  return t === "completed" || t === "failed" || t === "cancelled" || t === "paused";
}

async function caseOf(person: Instance, taskId: string): Promise<Case> {
  return { person, task: await person.requireTask(taskId) };
}

/** Once the store has failed, all other work ends with it. */
function unlessOver(work: Promise<void>): Promise<void> {
  return work.catch((error: unknown) => {
    if (!isRefusal(error, "store_failed", "store_closed", "closed")) throw error;
  });
}

/** Retries rejected messages. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const code = codeOf(error);
      if (code !== "store_busy" && code !== "overloaded") throw error;
      await delay(20);
    }
  }
}

function isRefusal(error: unknown, ...codes: readonly unknown[]): boolean {
  return codes.includes(codeOf(error));
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
