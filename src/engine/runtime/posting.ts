/** Puts messages into tasks: from users, from other swarms, and the answers to breakpoints. */

import type { Ids } from "../../base/index.js";
import { hasCode, MailroomError } from "../../base/index.js";
import type { Handling, JournalKey } from "../../journal/index.js";
import { formatTaskContributor } from "../../mail/index.js";
import type { InstanceId } from "../ports.js";
import { rowOf } from "../task/aggregate.js";
import type { AnswerApprovals, Command, DecisionContext, OpenTask } from "../task/commands.js";
import type { SwarmRules } from "../task/rules.js";
import { budgetProblem, changedLimits } from "../usage.js";
import type { Admission } from "./admission.js";
import { refused, toTaskError, unknownTask } from "./errors.js";
import type { RuntimePhase } from "./phase.js";
import {
  type JournalLocation,
  numberOf,
  type PostInput,
  type PostReceipt,
  type ReceiveInput,
  type RowsFor,
  rowsAt,
  titleOf,
} from "./receipts.js";
import { storable } from "./storable.js";
import type { TaskNames } from "./task-names.js";
import { instanceKey, type LiveTask, type TaskKernel, type Tasks } from "./task-work.js";
import { checkedTaskId, messageFromUser } from "./user-message.js";
import { Waiter, type Waiters } from "./waiters.js";

export interface PostingParts {
  readonly kernel: TaskKernel;
  readonly ids: Ids;
  readonly rules: () => SwarmRules;
  readonly now: () => DecisionContext;
  readonly phase: RuntimePhase;
  readonly names: TaskNames;
  readonly admission: Admission;
  readonly waiters: Waiters;
}

export class Posting {
  readonly #parts: PostingParts;

  constructor(parts: PostingParts) {
    this.#parts = parts;
  }

  /** Posts a user's message into a new or an existing task. Resolves when the message is durable. */
  async post(instance: InstanceId, { rows, ...given }: PostInput): Promise<PostReceipt> {
    this.#parts.phase.assertOpen();
    const problem = budgetProblem(given.budget ?? {});
    if (problem !== undefined) throw new MailroomError("bad_input", problem);
    const input: PostInput = { ...storable(given), ...(rows !== undefined && { rows }) };
    this.#parts.admission.assertQueueCapacity(input.body.length);
    const { taskId } = input;
    const open = () => {
      if (input.resumeFrom !== undefined) throw unknownTask(taskId ?? "");
      return this.#open(instance, input);
    };
    return taskId === undefined
      ? open()
      : this.#inOrAnew(instance, taskId, (key) => this.#postTo(key, instance, input), open);
  }

  /** Posts into the instance's task of this id, or opens the task if it does not exist. */
  async #inOrAnew<P>(
    instance: InstanceId,
    taskId: string,
    put: (key: JournalKey) => Promise<P>,
    open: () => Promise<P>,
  ): Promise<P> {
    const found = await this.#parts.names.findOrReserve(instance, taskId);
    if (typeof found === "string") {
      try {
        return await put(found);
      } catch (error) {
        const isGone = hasCode(error, "unknown_task");
        if (!isGone || (await this.#parts.names.keyOf(instance, taskId)) === found) throw error;
      }
      // The task was removed meanwhile, so the id is unused.
      return this.#inOrAnew(instance, taskId, put, open);
    }
    try {
      // The id is unused, and reserved for this call until the task is open.
      return await open();
    } finally {
      found();
    }
  }

  #open(instance: InstanceId, input: PostInput): Promise<PostReceipt> {
    const { swarm } = this.#parts.rules();
    const { maxSteps } = input;
    const { ids } = this.#parts;
    const taskId = input.taskId === undefined ? ids.ordered() : checkedTaskId(input.taskId);
    const key = ids.ordered();
    const moment = this.#parts.now();
    const addressed = messageFromUser(this.#parts.rules(), instance, taskId, input, moment);
    const { message, to, remote, entrypoint } = addressed;
    const owner = formatTaskContributor({ role: instance.role, id: instance.id, swarm });
    const header = { key, instance, taskId, swarm, owner, contributors: [owner], entrypoint };
    const limited = {
      ...header,
      ...(maxSteps !== undefined && { maxSteps }),
      ...(input.budget !== undefined && { budget: changedLimits({}, input.budget) }),
    };
    const task = input.manual === true ? { ...limited, manual: true as const } : limited;
    const waiter = new Waiter(this.#parts.waiters, key);
    const at = { key, taskId, messageId: message.id };
    return this.#create(
      { type: "open", task, message, to, remote },
      titleOf(input.body),
      at,
      input.rows,
      waiter,
    );
  }

  /** @param waiter the caller that waits for the outcome, if there is one */
  #create(
    command: OpenTask,
    title: string,
    at: Omit<JournalLocation, "number">,
    rows: RowsFor | undefined,
    waiter: Waiter,
  ): Promise<PostReceipt> {
    const { key, instance } = command.task;
    // The runtime may have been closed while the task was looked up.
    this.#parts.phase.assertOpen();
    this.#parts.admission.assertCapacityFor(instanceKey(instance));
    const given = rowsAt(rows, at);
    return new Promise((resolve, reject) => {
      this.#parts.kernel.create(key, command, {
        ...this.#waiting(at, waiter, true, resolve, reject),
        rows: (entries, first) => {
          const live = this.#parts.kernel.peek(key);
          const row = live?.latest === undefined ? [] : [rowOf(live.state, live.latest, title)];
          return [...row, ...(given?.(entries, first) ?? [])];
        },
      });
    });
  }

  #postTo(key: JournalKey, instance: InstanceId, input: PostInput): Promise<PostReceipt> {
    const taskId = input.taskId ?? "";
    return this.#ask(key, taskId, (live) => {
      const { state } = live;
      if (input.manual === true && !state.manual) {
        throw new MailroomError("wrong_state", `task '${taskId}' exists and does not run in manual mode`);
      }
      const addressed = messageFromUser(this.#parts.rules(), instance, taskId, input, this.#parts.now(), {
        entrypoint: state.entrypoint,
      });
      const { message, to, remote } = addressed;
      const { resumeFrom, maxSteps, budget, refuseInApproval, rows } = input;
      return {
        messageId: message.id,
        command: {
          type: "post",
          message,
          to,
          remote,
          ...(resumeFrom !== undefined && { resumeFrom }),
          ...(maxSteps !== undefined && { maxSteps }),
          ...(budget !== undefined && { budget }),
          ...(refuseInApproval === true && { refuseInApproval }),
        },
        rows,
      };
    });
  }

  /** Answers the breakpoint calls of a paused task; the outcome is that of the round that follows. */
  async answerBreakpoint(
    instance: InstanceId,
    taskId: string,
    answer: Omit<Extract<Command, { type: "answer_breakpoint" }>, "type">,
    rows?: RowsFor,
  ): Promise<PostReceipt> {
    // Before the first wait: the caller may change its object afterwards.
    const given = storable(answer);
    const key = await this.#parts.names.keyOf(instance, taskId);
    if (key === undefined) throw unknownTask(taskId);
    return this.answerFor({ key, taskId }, given, rows);
  }

  /** The same for a task of any instance; `by` is the principal that answers. */
  async answerFor(
    { key, taskId }: Pick<JournalLocation, "key" | "taskId">,
    answer: Omit<Extract<Command, { type: "answer_breakpoint" }>, "type">,
    rows?: RowsFor,
  ): Promise<PostReceipt> {
    this.#parts.phase.assertOpen();
    const given = storable(answer);
    this.#parts.admission.assertQueueCapacity(0);
    return this.#ask(key, taskId, () => ({
      messageId: this.#parts.ids.uuid(),
      command: { type: "answer_breakpoint", ...given },
      rows,
    }));
  }

  async answerApprovals(
    { key, taskId }: Pick<JournalLocation, "key" | "taskId">,
    answer: Omit<AnswerApprovals, "type">,
    rows?: RowsFor,
  ): Promise<PostReceipt> {
    this.#parts.phase.assertOpen();
    const given = storable(answer);
    this.#parts.admission.assertQueueCapacity(0);
    return this.#ask(key, taskId, () => ({
      messageId: this.#parts.ids.uuid(),
      command: { type: "answer_approvals", ...given },
      rows,
    }));
  }

  /** Puts a message of another person into a task that is there. The caller has checked that it may. */
  async postFor(
    { key, taskId }: Pick<JournalLocation, "key" | "taskId">,
    sender: InstanceId,
    { rows, ...given }: Omit<PostInput, "taskId" | "budget">,
  ): Promise<PostReceipt> {
    this.#parts.phase.assertOpen();
    const input: PostInput = { ...storable(given), taskId, ...(rows !== undefined && { rows }) };
    this.#parts.admission.assertQueueCapacity(input.body.length);
    return this.#postTo(key, sender, input);
  }

  /** Posts into an existing task, for a caller that waits for the outcome. */
  #ask(
    key: JournalKey,
    taskId: string,
    make: (live: LiveTask) => {
      readonly messageId: string;
      readonly command: Command;
      readonly rows: RowsFor | undefined;
    },
  ): Promise<PostReceipt> {
    return new Promise((resolve, reject) => {
      this.#parts.kernel.with(key, (live, error) => {
        if (live === undefined)
          return reject(error === undefined ? unknownTask(taskId) : toTaskError(error, taskId));
        try {
          this.#parts.phase.assertOpen();
          this.#parts.admission.assertCapacityIn(live);
          const { messageId, command, rows } = make(live);
          const at = { key, taskId, messageId };
          this.#parts.kernel.apply(live, command, {
            ...this.#waiting(at, new Waiter(this.#parts.waiters, key), false, resolve, reject),
            rows: rowsAt(rows, at),
          });
        } catch (thrown) {
          reject(thrown);
        }
      });
    });
  }

  #waiting(
    at: Omit<JournalLocation, "number">,
    waiter: Waiter,
    opened: boolean,
    resolve: (posted: PostReceipt) => void,
    reject: (error: Error) => void,
  ): Handling<Tasks> {
    const fail = (error: Error) => {
      waiter.forget();
      reject(error);
    };
    return {
      decided: ({ entries, first }) => {
        const number = numberOf(entries, first, at.messageId);
        waiter.place(number, entries[number - first]);
      },
      done: (unit) => {
        if (unit === undefined) return fail(new MailroomError("bad_input", "there was nothing to do"));
        const number = numberOf(unit.entries, unit.first, at.messageId);
        resolve({ ...at, number, opened, outcome: waiter.promise });
      },
      refused: (refusal) => fail(refused(refusal)),
      failed: (error) => fail(toTaskError(error, at.taskId)),
    };
  }

  /**
   * Posts mail from another swarm into the task it belongs to, or adopts the task. Resolves when the mail is durable.
   * @throws MailroomError `unknown_task`, `owner_mismatch`, or the code of the engine's refusal
   */
  async receive({ rows, ...given }: ReceiveInput): Promise<JournalLocation & { readonly opened: boolean }> {
    this.#parts.phase.assertOpen();
    const input: ReceiveInput = { ...storable(given), ...(rows !== undefined && { rows }) };
    const { instance, taskId, message } = input;
    this.#parts.admission.assertQueueCapacity(message.message.body.length);
    return this.#inOrAnew(
      instance,
      taskId,
      (key) => this.#receiveIn(key, input),
      () => {
        if (!input.adopts) throw unknownTask(taskId);
        return this.#adopt(input);
      },
    );
  }

  #receiveIn(key: JournalKey, input: ReceiveInput): Promise<JournalLocation & { readonly opened: boolean }> {
    const { taskId, owner, contributors, message, to, resumes } = input;
    const at = { key, taskId, messageId: message.id };
    return new Promise((resolve, reject) => {
      this.#parts.kernel.with(key, (live, error) => {
        if (live === undefined)
          return reject(error === undefined ? unknownTask(taskId) : toTaskError(error, taskId));
        try {
          this.#parts.phase.assertOpen();
          if (live.state.owner !== owner) {
            const text = `task '${taskId}' belongs to another owner than '${owner}'`;
            throw new MailroomError("owner_mismatch", text);
          }
          if (resumes) this.#parts.admission.assertCapacityIn(live);
          this.#parts.kernel.apply(
            live,
            { type: "post", message, to, contributors, resumes },
            {
              rows: rowsAt(input.rows, at),
              done: (unit) => {
                const number =
                  unit === undefined ? live.durable : numberOf(unit.entries, unit.first, message.id);
                resolve({ ...at, number, opened: false });
              },
              refused: (refusal) => reject(refused(refusal)),
              failed: (failure) => reject(toTaskError(failure, taskId)),
            },
          );
        } catch (thrown) {
          reject(thrown);
        }
      });
    });
  }

  async #adopt(input: ReceiveInput): Promise<JournalLocation & { readonly opened: boolean }> {
    const { instance, taskId, owner, contributors, message, to } = input;
    const { swarm, entrypoint } = this.#parts.rules();
    const key = this.#parts.ids.ordered();
    const task = { key, instance, taskId, swarm, owner, contributors, entrypoint };
    const at = { key, taskId, messageId: message.id };
    const waiter = new Waiter(this.#parts.waiters, key);
    const title = titleOf(message.message.body);
    const { number } = await this.#create({ type: "open", task, message, to }, title, at, input.rows, waiter);
    // The sender receives the end of the task by mail.
    waiter.forget();
    return { ...at, number, opened: true };
  }
}
