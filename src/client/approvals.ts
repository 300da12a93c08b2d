/** Questions of tasks to people, and the audit log. */
import * as z from "zod/mini";
import { type BreakpointAnswer, callOptions } from "./options.js";
import type { CallOptions, Transport, TransportRequest, WriteOptions } from "./transport.js";
import { AnyObject, WaitingCall } from "./wire.js";

const Approval = z.looseObject({
  key: z.string(),
  task_id: z.string(),
  task_owner: z.string(),
  title: z.nullable(z.string()),
  since: z.string(),
  /** `owner`, `approver` or `admin`: why the caller may answer. */
  right: z.string(),
  calls: z.array(WaitingCall),
  approvers: z.array(z.string()),
});
/** A task that waits for a person, as far as the caller may see it. */
export type Approval = z.infer<typeof Approval>;

const ApprovalPage = z.looseObject({ approvals: z.array(Approval), next_cursor: z.nullable(z.string()) });

const AuditRecord = z.looseObject({
  number: z.number(),
  time: z.string(),
  actor: z.string(),
  /** `approvers`, `answer`, `message`, `cancel` or `budget`. */
  action: z.string(),
  right: z.string(),
  key: z.string(),
  task_id: z.string(),
  owner: z.string(),
  details: z.record(z.string(), z.unknown()),
});
/** What a principal did to a task. */
export type AuditRecord = z.infer<typeof AuditRecord>;

const AuditPage = z.looseObject({ records: z.array(AuditRecord), next_before: z.nullable(z.number()) });

/** Options of `approvals`. */
export interface ApprovalListOptions extends CallOptions {
  /**
   * `mine`: the caller's own tasks and those that the caller was named for. `all`: for admins that act for owners.
   * @defaultValue `"mine"`
   */
  readonly scope?: "mine" | "all";
  /**
   * Number of tasks per page.
   * @defaultValue 50
   */
  readonly limit?: number;
}

/** Options of the audit log. */
export interface AuditOptions extends CallOptions {
  /** Only what this principal did, such as `user:bob`. */
  readonly actor?: string;
  /** Only what was done to the task with this internal key. */
  readonly key?: string;
  /**
   * Number of records per page.
   * @defaultValue 100
   */
  readonly limit?: number;
}

export async function* approvals(
  transport: Transport,
  options: ApprovalListOptions,
): AsyncGenerator<Approval, void, undefined> {
  const { scope, limit = 50 } = options;
  let cursor: string | undefined;
  do {
    const query = { scope, limit, cursor };
    const call: TransportRequest = { method: "GET", path: "/approvals", query, ...callOptions(options) };
    const page = await transport.json(call, ApprovalPage);
    yield* page.approvals;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

export function getApproval(transport: Transport, key: string, options: CallOptions): Promise<Approval> {
  const path = `/approvals/${encodeURIComponent(key)}`;
  return transport.json({ method: "GET", path, ...callOptions(options) }, Approval);
}

/** What becomes of a call that waits for approval. */
export type ApprovalDecision =
  | {
      readonly call_id: string;
      readonly decision: "approve";
      /** Replaces the arguments of the call. The server checks them. */
      readonly arguments?: Readonly<Record<string, unknown>>;
    }
  | { readonly call_id: string; readonly decision: "reject"; readonly reason?: string };

export async function decideApproval(
  transport: Transport,
  key: string,
  decisions: readonly ApprovalDecision[],
  options: WriteOptions,
): Promise<void> {
  const path = `/approvals/${encodeURIComponent(key)}`;
  await transport.json({ method: "POST", path, body: { decisions }, ...callOptions(options) }, AnyObject);
}

export async function answerApproval(
  transport: Transport,
  key: string,
  results: BreakpointAnswer,
  options: WriteOptions,
): Promise<void> {
  const path = `/approvals/${encodeURIComponent(key)}`;
  await transport.json({ method: "POST", path, body: { results }, ...callOptions(options) }, AnyObject);
}

/** @param path the task's */
export async function nameApprovers(
  transport: Transport,
  path: string,
  approvers: readonly string[],
  options: WriteOptions,
): Promise<void> {
  const call = { method: "POST", path: `${path}/approvers`, body: { approvers } } as const;
  await transport.json({ ...call, ...callOptions(options) }, AnyObject);
}

export async function* auditRecords(
  transport: Transport,
  options: AuditOptions,
): AsyncGenerator<AuditRecord, void, undefined> {
  const { actor, key, limit = 100 } = options;
  let before: number | undefined;
  do {
    const query = { actor, key, limit, before };
    const call: TransportRequest = { method: "GET", path: "/audit", query, ...callOptions(options) };
    const page = await transport.json(call, AuditPage);
    yield* page.records;
    before = page.next_before ?? undefined;
  } while (before !== undefined);
}
