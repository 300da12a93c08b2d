/**
 * What model calls used, and the limits on it: owners set limits on their tasks, admins set the others. Every change is
 * recorded in the audit log, in one commit with what it changes.
 */
import { type Clock, MailroomError } from "../base/index.js";
import {
  type Actor,
  type AuditPut,
  type AuditRecord,
  actorName,
  type BudgetChange,
  type BudgetLimits,
  type BudgetScope,
  type InstanceId,
  type Runtime,
  type Store,
  type TaskRow,
  type UsageReads,
  type UsageTotals,
  utcDay,
} from "../engine/index.js";

/** Callers and agents that one day shows. */
const MOST_NAMES = 1_000;
/** Days that one answer shows. */
const MOST_DAYS = 400;

interface DaysQuery {
  readonly caller?: InstanceId;
  /** `2026-01-31`, both included. */
  readonly from?: string;
  readonly to?: string;
}

/** What was used on one day (UTC), the most expensive first. */
export interface DayUsage {
  readonly day: string;
  readonly used: UsageTotals | undefined;
  readonly agents: readonly { readonly agent: string; readonly used: UsageTotals }[];
  readonly callers: readonly { readonly caller: InstanceId; readonly used: UsageTotals }[];
}

export class Budgets {
  readonly #runtime: Runtime;
  readonly #store: Store;
  #lastChange: Promise<void> = Promise.resolve();
  readonly #clock: Clock;

  constructor(parts: { readonly runtime: Runtime; readonly store: Store; readonly clock: Clock }) {
    this.#runtime = parts.runtime;
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  /** Changes limits that the owner set on a task. @throws MailroomError `unknown_task` also for another's task */
  async setOwn(actor: Actor, key: string, limits: BudgetChange): Promise<void> {
    const row = await this.#store.tasks.byKey(key);
    if (row === undefined || row.instance.role !== actor.role || row.instance.id !== actor.id)
      throw unknown(key);
    const audit = this.#audit(actor, "owner", row, { limits });
    await this.#runtime.setTaskBudget(key, { limits, by: plain(actor) }, [audit]);
  }

  /** Sets limits on anybody's task in place of the configured ones. For admins. */
  async setForTask(
    actor: Actor,
    key: string,
    limits: BudgetChange,
    agents: Readonly<Record<string, BudgetChange>> = {},
  ): Promise<void> {
    const row = await this.#store.tasks.byKey(key);
    if (row === undefined) throw unknown(key);
    const audit = this.#audit(actor, "admin", row, { limits, agents });
    const change = { limits, agents, by: plain(actor), admin: true } as const;
    await this.#runtime.setTaskBudget(key, change, [audit]);
  }

  /**
   * Changes the limits of a caller or of the server for a day (UTC), or of a caller in total; without a change, the
   * configured ones apply again.
   */
  setForDay(actor: Actor, scope: BudgetScope, change: BudgetChange | undefined): Promise<void> {
    // One after the other, because a change keeps the limits that it does not name.
    const done = this.#lastChange.then(() => this.#setForDay(actor, scope, change));
    this.#lastChange = done.catch(() => {});
    return done;
  }

  async #setForDay(actor: Actor, scope: BudgetScope, change: BudgetChange | undefined): Promise<void> {
    const owner = scope === "day" ? "" : `${scope.caller.role}:${scope.caller.id}`;
    const limits = change === undefined ? {} : { ...(await this.#reads().limits(scope)), ...change };
    const details = {
      ...(change === undefined ? { reset: true } : { limits: change }),
      ...(scope !== "day" && scope.total === true && { total: true }),
    };
    const audit = this.#record({ actor, right: "admin", key: "", taskId: "", owner, details });
    await this.#runtime.setDailyBudget(scope, limits, [audit]);
  }

  /** The limits for a day (UTC) that apply to a caller or to the server, or those of a caller in total. */
  ofDay(scope: BudgetScope): Promise<BudgetLimits> {
    return this.#runtime.dailyBudget(scope);
  }

  /** Callers with limits of their own. */
  limitedCallers(limit: number, after?: InstanceId): ReturnType<UsageReads["limitedCallers"]> {
    return this.#reads().limitedCallers(limit, after);
  }

  /** Days with any usage, newest first: of a caller, or of all. */
  days(query: DaysQuery): ReturnType<UsageReads["days"]> {
    return this.#reads().days({ ...query, limit: MOST_DAYS });
  }

  /** Default: today. */
  async day(day = utcDay(this.#clock.now())): Promise<DayUsage> {
    const reads = this.#reads();
    return {
      day,
      used: await reads.ofDay(day),
      agents: await reads.agents(day, MOST_NAMES),
      callers: await reads.callers(day, MOST_NAMES),
    };
  }

  /** What a caller used on all days. */
  total(caller: InstanceId): Promise<UsageTotals | undefined> {
    return this.#reads().total(caller);
  }

  /** What a caller used on a day, by agent. Default: today. */
  async callerDay(caller: InstanceId, day = utcDay(this.#clock.now())): Promise<Omit<DayUsage, "callers">> {
    const reads = this.#reads();
    return { day, used: await reads.ofDay(day, caller), agents: await reads.agents(day, MOST_NAMES, caller) };
  }

  #audit(
    actor: Actor,
    right: AuditRecord["right"],
    { key, taskId, instance }: TaskRow,
    details: AuditRecord["details"],
  ): AuditPut {
    return this.#record({ actor, right, key, taskId, owner: `${instance.role}:${instance.id}`, details });
  }

  #record({
    actor,
    ...rest
  }: Omit<AuditRecord, "at" | "actor" | "action"> & { readonly actor: Actor }): AuditPut {
    const record = { at: this.#clock.now(), actor: actorName(actor), action: "budget", ...rest } as const;
    return { kind: "audit.put", record };
  }

  #reads(): UsageReads {
    const { usage } = this.#store;
    if (usage === undefined) throw new Error("the store counts no usage by day");
    return usage;
  }
}

function plain({ role, id }: Actor): Actor {
  return { role, id };
}

function unknown(key: string): MailroomError {
  return new MailroomError("unknown_task", `there is no task with the key '${key}'`);
}
