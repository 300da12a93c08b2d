/**
 * Questions of tasks to people, and who may answer them: the owner, those whom the owner named, and admins where the
 * settings let them act for owners. Every door uses this, so that one rule holds. What others than the owner do is
 * recorded in the audit log, in one commit with the task's entries.
 */
import { type Clock, MailroomError } from "../base/index.js";
import {
  type Actor,
  type AnswerBreakpoint,
  type AnswerRight,
  type ApprovalDecision,
  type ApprovalReads,
  type ApproversPut,
  type AuditAction,
  type AuditPut,
  type AuditRecord,
  actorName,
  answerRight,
  approverNames,
  askedCalls,
  type JournalLocation,
  mayActForOwners,
  type PostInput,
  type PostReceipt,
  type RowsFor,
  type Runtime,
  type Store,
  type TaskPage,
  type TaskRow,
  type TaskState,
} from "../engine/index.js";
import type { RowWrite } from "../journal/index.js";
import type { AgentToolCall } from "../mail/index.js";

export interface WaitingCall {
  readonly agent: string;
  readonly call: AgentToolCall;
  /** `breakpoint`: a person supplies the result. `approval`: a person decides whether it runs. */
  readonly kind: "breakpoint" | "approval";
  /** When it can no longer be approved, in milliseconds since the epoch. */
  readonly expires?: number;
}

/** A task that waits for a person, as far as the person may see it. */
export interface Approval {
  readonly key: string;
  readonly taskId: string;
  /** `role:id@swarm` */
  readonly owner: string;
  readonly title: string | undefined;
  /** When the task paused, in milliseconds since the epoch. */
  readonly since: number;
  /** Why the actor may answer. */
  readonly right: AnswerRight;
  readonly calls: readonly WaitingCall[];
  readonly approvers: readonly string[];
}

export interface ApprovalPage {
  readonly approvals: readonly Approval[];
  readonly nextCursor?: string;
}

/** A part of a list; `cursor` is the `nextCursor` of the part before. The newest come first by default. */
export interface OthersPage {
  readonly limit: number;
  readonly cursor?: string;
  readonly order?: "asc" | "desc";
}

export interface AuditQuery {
  readonly actor?: string;
  readonly key?: string;
  readonly before?: number;
  readonly limit: number;
}

interface Target {
  readonly at: Pick<JournalLocation, "key" | "taskId">;
  readonly right: AnswerRight;
  /** `role:id` */
  readonly owner: string;
}

export class Approvals {
  readonly #runtime: Runtime;
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(parts: { readonly runtime: Runtime; readonly store: Store; readonly clock: Clock }) {
    this.#runtime = parts.runtime;
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  /**
   * What the actor may answer, newest first: its own tasks and those that it was named for. With `all`, an admin that acts
   * for owners sees every task that waits for a person.
   */
  async list(
    actor: Actor,
    options: { limit: number; cursor?: string; all?: boolean },
  ): Promise<ApprovalPage> {
    const { limit, cursor, all = false } = options;
    if (all && !mayActForOwners(actor)) throw notAllowed(actor);
    const from = { limit, ...(cursor !== undefined && { cursor }) };
    const { tasks } = this.#store;
    const pages: TaskPage[] = all
      ? [await tasks.list({ status: "paused", ...from })]
      : [await this.#reads().named({ approvers: approverNames(actor), ...from })];
    if (!all) {
      pages.push(
        await tasks.list({ instance: { role: actor.role, id: actor.id }, status: "paused", ...from }),
      );
    }
    const { rows, nextCursor } = merged(pages, limit);
    const approvals = await this.#approvals(actor, rows);
    return { approvals, ...(nextCursor !== undefined && { nextCursor }) };
  }

  /** Tasks of other owners that the actor was named for. */
  async listOthers(actor: Actor, page: OthersPage): Promise<ApprovalPage> {
    const { tasks, nextCursor } = await this.#reads().named({ approvers: approverNames(actor), ...page });
    const approvals = (await this.#approvals(actor, tasks)).filter(({ right }) => right !== "owner");
    return { approvals, ...(nextCursor !== undefined && { nextCursor }) };
  }

  async #approvals(actor: Actor, rows: readonly TaskRow[]): Promise<Approval[]> {
    const approvals: Approval[] = [];
    for (const row of rows) {
      const approval = row.held === true ? undefined : await this.#approval(actor, row);
      if (approval !== undefined) approvals.push(approval);
    }
    return approvals;
  }

  /** @throws MailroomError `unknown_task` also when the actor may not answer */
  async get(actor: Actor, key: string): Promise<Approval> {
    const row = await this.#store.tasks.byKey(key);
    const approval = row === undefined ? undefined : await this.#approval(actor, row);
    if (approval === undefined) throw unknown(key);
    return approval;
  }

  /** The owner's id of a task on which the actor may act. @throws MailroomError `unknown_task`, `forbidden` */
  async taskIdFor(actor: Actor, key: string): Promise<string> {
    if (actor.role === "admin" && !mayActForOwners(actor)) throw notAllowed(actor);
    return (await this.#target(actor, key)).at.taskId;
  }

  /** Answers the open calls of a task. @throws MailroomError `unknown_task` also when the actor may not answer */
  async answer(
    actor: Actor,
    key: string,
    answer: Omit<AnswerBreakpoint, "type" | "by">,
    rows: RowsFor = [],
  ): Promise<PostReceipt> {
    const target = await this.#target(actor, key);
    const calls = "content" in answer.results ? [] : answer.results.map(({ callId }) => callId);
    const audit = this.#audit(actor, target, "answer", calls.length > 0 ? { calls } : {});
    return this.#runtime.answerFor(target.at, { ...answer, by: plain(actor) }, (at) => [
      ...rowsOf(rows, at),
      ...audit,
    ]);
  }

  /** Decides calls that wait for approval. @throws MailroomError `unknown_task` also when the actor may not answer */
  async decide(
    actor: Actor,
    key: string,
    decisions: readonly ApprovalDecision[],
    rows: RowsFor = [],
  ): Promise<PostReceipt> {
    const target = await this.#target(actor, key);
    const facts = decisions.map(({ callId, decision }) => ({ call: callId, decision }));
    const audit = this.#audit(actor, target, "answer", { decisions: facts });
    return this.#runtime.answerApprovals(target.at, { decisions, by: plain(actor) }, (at) => [
      ...rowsOf(rows, at),
      ...audit,
    ]);
  }

  /** Names who may answer for the owner, in place of those named before. */
  async nameApprovers(
    actor: Actor,
    key: string,
    approvers: readonly string[],
    rows: readonly RowWrite[] = [],
  ): Promise<void> {
    const target = await this.#target(actor, key);
    if (target.right === "approver") throw notAllowed(actor);
    const put: ApproversPut = { kind: "approvers.put", key, approvers: [...new Set(approvers)] };
    const audit = this.#audit(actor, target, "approvers", { approvers: put.approvers });
    const command = { type: "name_approvers", approvers: put.approvers, by: plain(actor) } as const;
    await this.#runtime.command(key, command, [...rows, put, ...audit]);
  }

  /** Puts a message of an admin into a task of another owner. */
  async post(
    actor: Actor,
    key: string,
    { rows = [], ...input }: Omit<PostInput, "taskId" | "manual">,
  ): Promise<PostReceipt> {
    if (!mayActForOwners(actor)) throw notAllowed(actor);
    const target = await this.#target(actor, key);
    const audit = this.#audit(actor, target, "message", {});
    return this.#runtime.postFor(
      target.at,
      { role: actor.role, id: actor.id },
      {
        ...input,
        rows: (at) => [...rowsOf(rows, at), ...audit],
      },
    );
  }

  /** An admin cancels any task. */
  async cancel(actor: Actor, key: string, rows: readonly RowWrite[] = []): Promise<void> {
    const row = await this.#store.tasks.byKey(key);
    if (row === undefined || actor.role !== "admin") throw unknown(key);
    const { role, id } = row.instance;
    const own = role === actor.role && id === actor.id;
    const target: Target = {
      at: { key, taskId: row.taskId },
      right: own ? "owner" : "admin",
      owner: `${role}:${id}`,
    };
    const by = `${actor.role} '${actor.id}'`;
    await this.#runtime.cancel(key, by, [...rows, ...this.#audit(actor, target, "cancel", {})]);
  }

  /** What was done, newest first: for admins all of it, for others what they did and what was done to their tasks. */
  async audit(
    actor: Actor,
    query: AuditQuery,
  ): Promise<readonly (AuditRecord & { readonly number: number })[]> {
    const scope = actor.role === "admin" ? {} : { concerning: actorName(actor) };
    return this.#reads().audit({ ...query, ...scope });
  }

  async #target(actor: Actor, key: string): Promise<Target> {
    const found = await this.#runtime.read(key, (state) => ({
      taskId: state.taskId,
      instance: state.instance,
      right: answerRight(state, actor),
    }));
    if (found?.right === undefined) throw unknown(key);
    const { taskId, instance, right } = found;
    return { at: { key, taskId }, right, owner: `${instance.role}:${instance.id}` };
  }

  async #approval(actor: Actor, { key, title }: TaskRow): Promise<Approval | undefined> {
    return this.#runtime.read(key, (state) => approvalOf(state, actor, title));
  }

  #audit(
    actor: Actor,
    { at, right, owner }: Target,
    action: AuditAction,
    details: Readonly<Record<string, unknown>>,
  ): readonly AuditPut[] {
    const record = { at: this.#clock.now(), actor: actorName(actor), action, right, ...at, owner, details };
    return [{ kind: "audit.put", record }];
  }

  #reads(): ApprovalReads {
    const { approvals } = this.#store;
    if (approvals === undefined) throw new Error("the store does not support approvals");
    return approvals;
  }
}

function approvalOf(state: TaskState, actor: Actor, title: string | undefined): Approval | undefined {
  const right = answerRight(state, actor);
  if (right === undefined || state.status !== "paused") return undefined;
  const breakpoints = [...state.agents].flatMap(([agent, { open }]) =>
    open.map((call): WaitingCall => ({ agent, call, kind: "breakpoint" })),
  );
  const asked = askedCalls(state).map(
    ({ agent, call, expires }): WaitingCall => ({
      agent,
      call,
      kind: "approval",
      ...(expires !== undefined && { expires }),
    }),
  );
  const calls = [...breakpoints, ...asked];
  if (calls.length === 0) return undefined;
  return {
    key: state.key,
    taskId: state.taskId,
    owner: state.owner,
    title,
    since: state.updatedAt,
    right,
    calls,
    approvers: state.approvers ?? [],
  };
}

/** Merges pages, newest first. Beyond the end of a page that has a next one, nothing is known to be complete. */
function merged(pages: readonly TaskPage[], limit: number): { rows: TaskRow[]; nextCursor?: string } {
  let end = "";
  const rows = new Map<string, TaskRow>();
  for (const { tasks, nextCursor = "" } of pages) {
    for (const row of tasks) rows.set(row.key, row);
    if (nextCursor > end) end = nextCursor;
  }
  const ordered = [...rows.values()].filter(({ key }) => key >= end).sort((a, b) => (a.key < b.key ? 1 : -1));
  const page = ordered.slice(0, limit);
  const last = page.at(-1)?.key;
  const next = ordered.length > limit && last !== undefined ? last : end;
  return { rows: page, ...(next !== "" && { nextCursor: next }) };
}

/** What the journal needs to know of an actor. */
function plain({ role, id, actsForOwners }: Actor): Actor {
  return { role, id, ...(actsForOwners === true && { actsForOwners }) };
}

function rowsOf(rows: RowsFor, at: JournalLocation): readonly RowWrite[] {
  return typeof rows === "function" ? rows(at) : rows;
}

/** The same for a missing task and for one that the actor may not see. */
function unknown(key: string): MailroomError {
  return new MailroomError("unknown_task", `there is no task with the key '${key}'`);
}

function notAllowed({ role }: Actor): MailroomError {
  return new MailroomError(
    "forbidden",
    role === "admin"
      ? "admins may not act for owners on this server (auth.admins_act_for_owners)"
      : `role '${role}' may not do this`,
  );
}
