import {
  type BudgetChange,
  type BudgetPut,
  type BudgetScope,
  INSTANCE_ROLES,
  type InstanceId,
  type UsageAdd,
  type UsageExpire,
  type UsageReads,
  type UsageRowWrite,
  type UsageTotals,
} from "../../engine/index.js";
import type { Database } from "../database.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/**
 * What model calls used by day, and limits that admins set. Sums are rows of their own, so that a limit is checked by
 * reading one row: an empty agent stands for all agents, and an empty caller for all callers. An empty day stands for the
 * days of a caller that were removed.
 */
export const usageTables = defineTableSet<UsageRowWrite>({
  name: "usage",
  migrations: [
    {
      number: 1,
      name: "usage by day, and budgets",
      sql: `
        CREATE TABLE usage (
          day TEXT NOT NULL,
          role TEXT NOT NULL,
          instance TEXT NOT NULL,
          agent TEXT NOT NULL,
          calls INTEGER NOT NULL,
          failed_calls INTEGER NOT NULL,
          input_tokens REAL NOT NULL,
          output_tokens REAL NOT NULL,
          cached_tokens REAL NOT NULL,
          cost REAL,
          PRIMARY KEY (day, role, instance, agent)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX usage_days ON usage (role, instance, agent, day);
        CREATE TABLE budgets (
          role TEXT NOT NULL,
          instance TEXT NOT NULL,
          limits TEXT NOT NULL,
          PRIMARY KEY (role, instance)
        ) STRICT, WITHOUT ROWID;
      `,
    },
  ],
  writes: { "usage.add": addUsage, "usage.expire": expireUsage, "budget.put": putBudget },
});

const ALL = { role: "", instance: "" };
/** Begins the instance of limits of a caller in total; `role:id` follows. */
const TOTAL = "total:";

const ADD = `
  INSERT INTO usage (day, role, instance, agent, calls, failed_calls, input_tokens, output_tokens, cached_tokens, cost)
  VALUES (@day, @role, @instance, @agent, @calls, @failedCalls, @inputTokens, @outputTokens, @cachedInputTokens, @cost)
  ON CONFLICT DO UPDATE SET
    calls = calls + excluded.calls,
    failed_calls = failed_calls + excluded.failed_calls,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens,
    cost = CASE WHEN cost IS NULL THEN excluded.cost ELSE cost + ifnull(excluded.cost, 0) END
`;

function addUsage({ db }: WriteContext): (write: UsageAdd) => void {
  const add = db.prepare(ADD);
  return ({ day, instance, agent, used }) => {
    const row = { day, ...used, cost: used.cost ?? null };
    for (const scope of [ALL, scopeOf(instance)]) {
      add.run({ ...row, ...scope, agent: "" });
      add.run({ ...row, ...scope, agent });
    }
  };
}

/** Rows removed by one write, so that it does not delay others. */
const EXPIRED_AT_ONCE = 1_000;

function expireUsage({ db }: WriteContext): (write: UsageExpire) => void {
  const expired = db.prepare<[string], StoredUsage>(
    `SELECT ${COLUMNS} FROM usage WHERE day > '' AND day < ? ORDER BY day LIMIT ${EXPIRED_AT_ONCE}`,
  );
  const add = db.prepare(ADD);
  const remove = db.prepare(
    "DELETE FROM usage WHERE day = @day AND role = @role AND instance = @instance AND agent = @agent",
  );
  return ({ before }) => {
    for (const row of expired.all(before)) {
      const { day, role, instance, agent, cost } = row;
      // Limits of a caller in total count these days too.
      if (role !== "" && agent === "") add.run({ ...toTotals(row), cost, day: "", role, instance, agent });
      remove.run({ day, role, instance, agent });
    }
  };
}

function putBudget({ db }: WriteContext): (write: BudgetPut) => void {
  const put = db.prepare(
    "INSERT OR REPLACE INTO budgets (role, instance, limits) VALUES (@role, @instance, @limits)",
  );
  const remove = db.prepare("DELETE FROM budgets WHERE role = @role AND instance = @instance");
  return ({ scope, limits }) => {
    const of = keyOf(scope);
    if (Object.keys(limits).length === 0) remove.run(of);
    else put.run({ ...of, limits: JSON.stringify(limits) });
  };
}

interface StoredSums {
  readonly calls: number;
  readonly failed_calls: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens: number;
  readonly cost: number | null;
}

interface StoredTotals extends StoredSums {
  readonly days: number;
}

interface StoredUsage extends StoredSums {
  readonly day: string;
  readonly role: string;
  readonly instance: string;
  readonly agent: string;
}

interface StoredBudget {
  readonly role: string;
  readonly instance: string;
  readonly limits: string;
}

const COLUMNS =
  "day, role, instance, agent, calls, failed_calls, input_tokens, output_tokens, cached_tokens, cost";
const SUMS =
  "sum(calls) AS calls, sum(failed_calls) AS failed_calls, sum(input_tokens) AS input_tokens, " +
  "sum(output_tokens) AS output_tokens, sum(cached_tokens) AS cached_tokens, sum(cost) AS cost";
const EXPENSIVE = "ifnull(cost, 0) DESC, input_tokens + output_tokens DESC";

export function createUsageReads(db: Database, ready: () => void): UsageReads {
  const one = db.prepare<[object], StoredUsage>(
    `SELECT ${COLUMNS} FROM usage WHERE day = @day AND role = @role AND instance = @instance AND agent = ''`,
  );
  const total = db.prepare<[object], StoredTotals>(
    `SELECT count(*) AS days, ${SUMS} FROM usage WHERE role = @role AND instance = @instance AND agent = ''`,
  );
  const days = db.prepare<[object], StoredUsage>(
    `SELECT ${COLUMNS} FROM usage WHERE role = @role AND instance = @instance AND agent = ''
       AND day > '' AND day >= @from AND day <= @to ORDER BY day DESC LIMIT @limit`,
  );
  const agents = db.prepare<[object], StoredUsage>(
    `SELECT ${COLUMNS} FROM usage WHERE day = @day AND role = @role AND instance = @instance AND agent > ''
       ORDER BY ${EXPENSIVE}, agent LIMIT @limit`,
  );
  const callers = db.prepare<[object], StoredUsage>(
    `SELECT ${COLUMNS} FROM usage WHERE day = @day AND role > '' AND agent = ''
       ORDER BY ${EXPENSIVE}, role, instance LIMIT @limit`,
  );
  const oldest = db.prepare<[], string>("SELECT day FROM usage WHERE day > '' ORDER BY day LIMIT 1").pluck();
  const limitsOf = db.prepare<[object], StoredBudget>(
    "SELECT role, instance, limits FROM budgets WHERE role = @role AND instance = @instance",
  );
  const limited = db.prepare<[object], Pick<StoredBudget, "role" | "instance">>(
    `WITH totals AS (SELECT substr(instance, ${TOTAL.length + 1}) AS caller FROM budgets WHERE role = '' AND instance > '${TOTAL}'),
       callers AS (
         SELECT role, instance FROM budgets WHERE role > ''
         UNION SELECT substr(caller, 1, instr(caller, ':') - 1), substr(caller, instr(caller, ':') + 1) FROM totals
       )
     SELECT role, instance FROM callers WHERE (role, instance) > (@role, @instance)
       ORDER BY role, instance LIMIT @limit`,
  );
  return {
    async ofDay(day, caller) {
      ready();
      const row = one.get({ day, ...scopeOf(caller) });
      return row === undefined ? undefined : toTotals(row);
    },
    async total(caller) {
      ready();
      const row = total.get(scopeOf(caller));
      return row === undefined || row.days === 0 ? undefined : toTotals(row);
    },
    async days({ caller, from = "", to = "~", limit }) {
      ready();
      const rows = days.all({ ...scopeOf(caller), from, to, limit });
      return rows.map((row) => ({ day: row.day, used: toTotals(row) }));
    },
    async agents(day, limit, caller) {
      ready();
      const rows = agents.all({ day, ...scopeOf(caller), limit });
      return rows.map((row) => ({ agent: row.agent, used: toTotals(row) }));
    },
    async callers(day, limit) {
      ready();
      return callers.all({ day, limit }).map((row) => ({ caller: toInstance(row), used: toTotals(row) }));
    },
    async oldestDay() {
      ready();
      return oldest.get();
    },
    async limits(scope) {
      ready();
      const row = limitsOf.get(keyOf(scope));
      return row === undefined ? undefined : toLimits(row);
    },
    async limitedCallers(limit, after) {
      ready();
      return limited.all({ ...scopeOf(after), limit }).map(toInstance);
    },
  };
}

function scopeOf(caller: InstanceId | undefined): { role: string; instance: string } {
  return caller === undefined ? ALL : { role: caller.role, instance: caller.id };
}

function keyOf(scope: BudgetScope): { role: string; instance: string } {
  if (scope === "day") return ALL;
  const { caller, total } = scope;
  return total === true ? { role: "", instance: `${TOTAL}${caller.role}:${caller.id}` } : scopeOf(caller);
}

function toInstance({ role, instance }: Pick<StoredUsage, "role" | "instance">): InstanceId {
  const known = INSTANCE_ROLES.find((candidate) => candidate === role);
  if (known === undefined) throw new Error(`the database holds usage of unknown role "${role}"`);
  return { role: known, id: instance };
}

/** Only `budget.put` writes them. */
function toLimits({ limits }: StoredBudget): BudgetChange {
  return JSON.parse(limits);
}

function toTotals(row: StoredSums): UsageTotals {
  return {
    calls: row.calls,
    failedCalls: row.failed_calls,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    cachedInputTokens: row.cached_tokens,
    ...(row.cost !== null && { cost: row.cost }),
  };
}
