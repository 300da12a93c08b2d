/** What model calls used, and the limits on it: of the caller, and for admins of everybody. */
import {
  type Actor,
  type BudgetScope,
  budgetView,
  readBudgetChange,
  recordOf,
  usageView,
} from "../../../engine/index.js";
import {
  ADMINS,
  type Caller,
  defineRoute,
  KeyPath,
  NO_INPUT,
  type Route,
  TaskPath,
  USERS_AND_ADMINS,
} from "../../../extension/index.js";
import type { DayUsage } from "../../../library/index.js";
import type { MailDoor } from "../door.js";
import {
  AdminTaskBudgetRequest,
  AdminUsageQuery,
  AdminUsageReport,
  BudgetPage,
  BudgetPageQuery,
  BudgetRequest,
  CallerPath,
  DailyBudgetAnswer,
  TaskBudgetAnswer,
  UsageQuery,
  UsageReport,
} from "../schemas/budgets.js";
import { adminTask, noteAccess } from "../task-access.js";
import { instanceNamed } from "../task-filter.js";

export function budgetRoutes({ mailroom }: MailDoor): Route[] {
  const { budgets, runtime } = mailroom;

  /** Read after the change, because a task that was paused at a limit may continue. */
  async function taskBudget(key: string) {
    const record = await runtime.read(key, (state) => recordOf(state, [], undefined, runtime.rules));
    const { budget, usage } = record ?? {};
    return {
      key,
      task_id: record?.task_id ?? "",
      status: record?.status ?? ("running" as const),
      ...(budget !== undefined && { budget }),
      ...(usage !== undefined && { usage: { ...usage, agents: { ...usage.agents } } }),
    };
  }

  return [
    defineRoute({
      ...NO_INPUT,
      id: "setTaskBudget",
      method: "POST",
      path: "/tasks/{task_id}/budget",
      tag: "tasks",
      summary: "Change the limits that the owner set on a task",
      description:
        "A number sets a limit on what the model calls of the task use, and null lifts it. A task that was paused at a " +
        "limit continues if no limit is reached. Limits of the operator apply beside these.",
      access: USERS_AND_ADMINS,
      params: TaskPath,
      body: BudgetRequest,
      answers: { 200: { description: "The limits apply.", schema: TaskBudgetAnswer } },
      errors: ["unknown_task", "bad_input"],
      async handle({ params, body, request }, caller) {
        const task = await mailroom.instance(caller.instance).requireTask(params.task_id);
        request.taskKey = task.key;
        await budgets.setOwn(actorOf(caller), task.key, readBudgetChange(body.budget));
        return { status: 200, body: await taskBudget(task.key) };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getUsage",
      method: "GET",
      path: "/usage",
      tag: "tasks",
      summary: "What the caller's model calls used",
      access: USERS_AND_ADMINS,
      query: UsageQuery,
      answers: { 200: { description: "By agent today, and by day.", schema: UsageReport } },
      async handle({ query }, { instance }) {
        const { day, used, agents } = await budgets.callerDay(instance);
        const today = {
          day,
          usage: used === undefined ? null : usageView(used),
          agents: agents.map(ofAgent),
        };
        const days = (await budgets.days({ ...query, caller: instance })).map(ofDay);
        const budget = budgetView(await budgets.ofDay({ caller: instance }));
        const all = await budgets.total(instance);
        const total = {
          usage: all === undefined ? null : usageView(all),
          budget: budgetView(await budgets.ofDay({ caller: instance, total: true })),
        };
        return { status: 200, body: { today, budget, total, days } };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminSetTaskBudget",
      method: "POST",
      path: "/admin/tasks/{key}/budget",
      tag: "administration",
      summary: "Set limits on anybody's task in place of the configured ones",
      description:
        "For the task and for its agents. A number sets a limit, null lifts it, and absent keeps it. Limits that the " +
        "owner set apply beside these.",
      access: ADMINS,
      params: KeyPath,
      body: AdminTaskBudgetRequest,
      answers: { 200: { description: "The limits apply.", schema: TaskBudgetAnswer } },
      errors: ["unknown_task", "unknown_agent", "bad_input"],
      async handle({ params, body: { budget: limits = {}, agents = {} }, request }, caller) {
        const { key } = await adminTask(mailroom, params.key);
        noteAccess(request, caller, "an admin set the budget of a task", key);
        const ofAgents = Object.entries(agents).map(
          ([name, change]) => [name, readBudgetChange(change)] as const,
        );
        await budgets.setForTask(
          actorOf(caller),
          key,
          readBudgetChange(limits),
          Object.fromEntries(ofAgents),
        );
        return { status: 200, body: await taskBudget(key) };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminGetUsage",
      method: "GET",
      path: "/admin/usage",
      tag: "administration",
      summary: "What all model calls used",
      access: ADMINS,
      query: AdminUsageQuery,
      answers: {
        200: { description: "One day by agent and by caller, and all days.", schema: AdminUsageReport },
      },
      async handle({ query: { day, ...range }, request }, caller) {
        noteAccess(request, caller, "an admin read everybody's usage");
        const shown = await budgets.day(day);
        const body = {
          day: shown.day,
          usage: shown.used === undefined ? null : usageView(shown.used),
          agents: shown.agents.map(ofAgent),
          callers: shown.callers.map(({ caller: { role, id }, used }) => ({
            caller: `${role}:${id}`,
            usage: usageView(used),
          })),
          budget: budgetView(await budgets.ofDay("day")),
          days: (await budgets.days(range)).map(ofDay),
        };
        return { status: 200, body };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminListBudgets",
      method: "GET",
      path: "/admin/budgets",
      tag: "administration",
      summary: "Limits of the server for a day, and of callers for a day and in total",
      access: ADMINS,
      query: BudgetPageQuery,
      answers: { 200: { description: "The limits.", schema: BudgetPage } },
      async handle({ query: { limit = 100, after } }) {
        const found = await budgets.limitedCallers(
          limit,
          after === undefined ? undefined : instanceNamed(after),
        );
        const callers = [];
        for (const caller of found) {
          const budget = budgetView(await budgets.ofDay({ caller }));
          const total = budgetView(await budgets.ofDay({ caller, total: true }));
          callers.push({ caller: `${caller.role}:${caller.id}`, budget, total });
        }
        const { callerBudget, callerTotalBudget, dayBudget } = runtime.limits;
        const body = {
          configured: {
            task: budgetView(runtime.rules.budget),
            caller: budgetView(callerBudget),
            caller_total: budgetView(callerTotalBudget),
            day: budgetView(dayBudget),
          },
          day: budgetView(await budgets.ofDay("day")),
          callers,
          next_after: callers.length < limit ? null : (callers.at(-1)?.caller ?? null),
        };
        return { status: 200, body };
      },
    }),
    ...dailyRoutes("day"),
    ...dailyRoutes("caller"),
    ...dailyRoutes("total"),
  ];

  function dailyRoutes(kind: "day" | "caller" | "total"): Route[] {
    const isDay = kind === "day";
    const ofCaller = "/admin/budgets/callers/{caller}";
    const path = { day: "/admin/budgets/day", caller: ofCaller, total: `${ofCaller}/total` }[kind];
    const whose = isDay ? "the server" : "a caller";
    const when = kind === "total" ? "on all days together" : "for a day";
    const params = isDay ? NO_INPUT.params : CallerPath;
    const name = { day: "DayBudget", caller: "CallerBudget", total: "CallerTotalBudget" }[kind];
    const scopeOf = (given: object): BudgetScope =>
      "caller" in given
        ? { caller: instanceNamed(String(given.caller)), ...(kind === "total" && { total: true }) }
        : "day";
    const shared = {
      ...NO_INPUT,
      path,
      tag: "administration",
      access: ADMINS,
      params,
      answers: { 200: { description: "The limits that apply.", schema: DailyBudgetAnswer } },
    } as const;
    return [
      defineRoute({
        ...shared,
        id: `adminSet${name}`,
        method: "POST",
        summary: `Set the limits of ${whose} ${when}`,
        description:
          "In place of the configured ones, from now on. A number sets a limit, null lifts it, and absent keeps it. Tasks " +
          "that were paused at a limit continue if no limit is reached.",
        body: BudgetRequest,
        errors: ["bad_input"],
        async handle({ params: given, body, request }, caller) {
          const scope = scopeOf(given);
          noteAccess(request, caller, `an admin set the budget of ${whose}`);
          await budgets.setForDay(actorOf(caller), scope, readBudgetChange(body.budget));
          return { status: 200, body: { budget: budgetView(await budgets.ofDay(scope)) } };
        },
      }),
      defineRoute({
        ...shared,
        id: `adminReset${name}`,
        method: "DELETE",
        summary: `Return to the configured limits of ${whose} ${when}`,
        async handle({ params: given, request }, caller) {
          const scope = scopeOf(given);
          noteAccess(request, caller, `an admin reset the budget of ${whose}`);
          await budgets.setForDay(actorOf(caller), scope, undefined);
          return { status: 200, body: { budget: budgetView(await budgets.ofDay(scope)) } };
        },
      }),
    ];
  }
}

function actorOf({ principal: { role, id } }: Caller): Actor {
  return { role: role === "admin" ? "admin" : "user", id };
}

function ofAgent({ agent, used }: DayUsage["agents"][number]) {
  return { agent, usage: usageView(used) };
}

function ofDay({ day, used }: { readonly day: string; readonly used: Parameters<typeof usageView>[0] }) {
  return { day, usage: usageView(used) };
}
