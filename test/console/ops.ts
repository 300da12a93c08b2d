/**
 * A swarm that looks like real work, for the console's tests and pictures: a lead that asks three agents about an
 * incident, actions that fail and are tried again, a question for a person, tokens and cost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Turn, TurnResult } from "../../src/engine/index.js";
import { defineAction, defineAgent, defineSwarm, type SwarmDefinition } from "../../src/index.js";

export const INCIDENT =
  "Checkout p99 jumped to 4.1 s at 18:42. Find the cause, and roll back if it is a deploy.";

export const QUESTIONS = [
  "Count 5xx of profile-api by status code",
  "Which pods of inventory restarted since the deploy?",
  "Show the slowest route of edge-proxy",
  "Which deploys touched gateway today?",
  "Compare p50 of catalog-api with last week",
  "List alerts that fired and were not acknowledged",
  "Check saturation of search-api in eu-west",
  "Which retention does the audit log have?",
] as const;

/** Waits for approval of an action. */
export const RESTART = "Restart the pods of search-api that hang";

export interface OpsOptions {
  /** 1 is the pace of a model; 0 answers at once. */
  readonly pace?: number;
  /** The swarm `vendor` is asked too. */
  readonly vendor?: boolean;
}

type Call = TurnResult["calls"][number];

/** The other organization's swarm: one agent, which answers at once. */
export function vendorSwarm(name = "vendor"): SwarmDefinition {
  return defineSwarm({
    name,
    description: "The payment vendor's security desk.",
    enableInterswarm: true,
    agents: [
      defineAgent({
        name: "security",
        enableEntrypoint: true,
        enableInterswarm: true,
        canCompleteTasks: true,
        run: (mail) =>
          mail.complete(
            "Nothing was deployed, rotated or limited since 16:05 UTC. Your error rate at our edge is 0.",
          ),
      }),
    ],
  });
}

export function opsSwarm({ pace = 1, vendor = false }: OpsOptions = {}): SwarmDefinition {
  const findings = vendor ? 4 : 3;
  let ids = 0;
  const call = (name: string, args: Record<string, unknown>): Call => ({
    id: `call_${(++ids).toString(16).padStart(8, "0")}`,
    name,
    args,
  });
  const ask = (target: string, subject: string, body: string) =>
    call("send_request", { target, subject, body });
  const respond = (target: string, subject: string, body: string) =>
    call("send_response", { target, subject: `Re: ${subject}`, body });

  /** A turn that costs time and tokens. */
  const think = async (
    turn: Turn,
    ms: number,
    output: number,
    result: Omit<TurnResult, "usage">,
  ): Promise<TurnResult> => {
    const spread = 0.75 + ((turn.history.length * 37 + turn.agent.length * 13) % 50) / 100;
    if (pace > 0) await sleep(ms * spread * pace, undefined, { signal: turn.signal });
    const text = JSON.stringify(turn.history).length;
    const input = 900 + Math.round(text / 4);
    const cached = turn.history.length < 3 ? 0 : Math.round(input * 0.6);
    const large = turn.agent === "lead" || turn.agent === "code";
    const price = large ? { input: 3, cached: 0.3, output: 15 } : { input: 0.25, cached: 0.03, output: 2 };
    const cost = ((input - cached) * price.input + cached * price.cached + output * price.output) / 1_000_000;
    return {
      ...result,
      usage: {
        inputTokens: input,
        outputTokens: output,
        cachedInputTokens: cached,
        cost,
        model: large ? "anthropic/claude-sonnet-4-5" : "openai/gpt-5-mini",
      },
    };
  };

  /** Results since the last request, and that request. */
  const progress = (turn: Turn) => {
    let from = 0;
    for (const [index, item] of turn.history.entries()) {
      if (item.kind === "message" && item.message.msg_type === "request") from = index;
    }
    const asked = turn.history[from];
    const message = asked?.kind === "message" ? asked.message.message : undefined;
    const results = turn.history
      .slice(from)
      .filter(
        (item) => item.kind === "result" && !item.name.startsWith("send_") && item.name !== "await_message",
      );
    return {
      results: results.length,
      subject: message?.subject ?? "",
      body: message?.body ?? "",
      sender: message?.sender.address ?? "lead",
    };
  };

  const action = (
    name: string,
    description: string,
    ms: number,
    run: (args: Readonly<Record<string, unknown>>, attempt: number) => string,
  ) => {
    const seen = new Map<string, number>();
    return defineAction({
      name,
      description,
      parameters: { type: "object", properties: {}, additionalProperties: true },
      run: async (args, context) => {
        if (pace > 0) await sleep(ms * pace, undefined, { signal: context.signal });
        const count = (seen.get(context.task.key) ?? 0) + 1;
        seen.set(context.task.key, count);
        return run(args, count);
      },
    });
  };
  const queryMetrics = action(
    "query_metrics",
    "Queries time series.",
    140,
    () => "p99 0.31 s until 18:42:10, then 4.12 s. Pool waits 0 -> 38 on all pods.",
  );
  const searchLogs = action("search_logs", "Searches logs.", 700, (_, attempt) => {
    if (attempt === 1) throw new Error("504 from logs-gateway: query exceeded 1 s, narrow the range");
    return "1,204 times: timeout waiting for a connection (pool size 8)";
  });
  const gitLog = action(
    "git_log",
    "Lists commits.",
    110,
    () => "4f2c1e0 share pool settings between services (18:31, deployed 18:40)",
  );
  const readFile = action("read_file", "Reads a file.", 60, () => "pool:\n  size: 8");
  const approve = action("approve_rollback", "Asks a person.", 0, () => "never run");
  const postStatus = action(
    "post_status",
    "Publishes to the status page.",
    180,
    () => "published as incident 2291",
  );

  const restartPods = defineAction({
    name: "restart_pods",
    description: "Restarts pods of a service.",
    parameters: z.object({
      service: z.string(),
      pods: z.array(z.string()).max(20),
      grace_seconds: z.number().min(0).max(300),
    }),
    approval: true,
    run: ({ pods }) => `restarted ${pods.join(", ")}`,
  });

  const lead = defineAgent({
    name: "lead",
    enableEntrypoint: true,
    canCompleteTasks: true,
    enableInterswarm: vendor,
    commTargets: ["metrics", "logs", "code", "comms", ...(vendor ? ["security@vendor"] : [])],
    actions: [approve, restartPods],
    run: async (turn) => {
      const text = JSON.stringify(turn.history);
      const incident = text.includes("Checkout");
      const answers = turn.history.filter(
        (item) => item.kind === "message" && item.message.msg_type === "response",
      ).length;
      const first = turn.messages[0].message;
      if (!incident) return await quick(turn, answers, first.body);
      const approved = turn.history.find(
        (item) => item.kind === "result" && item.name === "approve_rollback",
      );
      const fresh = first.sender.address_type === "user" || first.sender.address_type === "admin";
      if (fresh) {
        return await think(turn, 1_200, 452, {
          reasoning:
            "Latency step, one service. Look at three things at once: what the series did, what the logs say, what was deployed.",
          calls: [
            ask(
              "metrics",
              "When and where did p99 move?",
              "checkout-api, p50/p99 and saturation, 18:00 to now. Is it one pod, one route, or all of them?",
            ),
            ask(
              "logs",
              "Errors and timeouts",
              "checkout-api since 18:30: which messages are new, and how many a minute?",
            ),
            ask(
              "code",
              "What was deployed",
              "checkout-api: commits between 18:00 and 18:45 that touch configuration, pools or clients.",
            ),
          ],
        });
      }
      if (approved === undefined) {
        if (answers < 3) return await think(turn, 500, 60, { calls: [call("await_message", {})] });
        if (answers < findings) {
          return await think(turn, 1_000, 68, {
            calls: [
              ask(
                "security@vendor",
                "Changes on your side since 18:30?",
                "checkout-api sees 4.1 s p99 since 18:42 UTC, calls to your interface included. Did you deploy, rotate or rate-limit anything?",
              ),
            ],
          });
        }
        return await think(turn, 1_500, 84, {
          reasoning:
            "Three independent findings agree on the deploy. A rollback touches production, so a person decides.",
          calls: [
            call("approve_rollback", {
              service: "checkout-api",
              deploy: "4f2c1e0",
              reason: "pool size 40 -> 8; p99 4.1 s since 18:42",
            }),
          ],
        });
      }
      if (answers === findings) {
        return await think(turn, 1_200, 272, {
          calls: [
            ask(
              "comms",
              "Draft and publish",
              "Checkout was slow between 18:42 and 19:58 UTC. Cause: a configuration change, rolled back. No data was lost.",
            ),
          ],
        });
      }
      return await think(turn, 1_300, 104, {
        calls: [
          call("task_complete", {
            finish_message:
              "**Cause**: deploy `4f2c1e0` (18:40) shared pool settings between services, so checkout-api took the default of 8 connections instead of 40.\n\n- p99 is back at 0.31 s since the rollback\n- 1,204 requests had timed out\n- the status page is updated (incident 2291)",
          }),
        ],
      });
    },
  });

  const quick = (turn: Turn, answers: number, body: string) => {
    if (/retention/.test(body)) throw new Error("no helper can answer this: retention is 30 days");
    if (/Restart/.test(body) || turn.history.some((item) => item.kind === "result")) {
      const result = turn.history.findLast((item) => item.kind === "result");
      if (result?.kind === "result")
        return think(turn, 500, 40, { calls: [call("task_complete", { finish_message: result.content })] });
      return think(turn, 700, 90, {
        reasoning:
          "Two pods answer no probe and hold their connections. A restart loses their work in memory.",
        calls: [
          call("restart_pods", {
            service: "search-api",
            pods: ["search-api-7d9c-2kqxm", "search-api-7d9c-x8f4t"],
            grace_seconds: 30,
          }),
        ],
      });
    }
    const helper = /deploy/.test(body) ? "code" : /5xx|alerts|pods|retention/.test(body) ? "logs" : "metrics";
    if (answers === 0 && turn.messages[0].message.sender.address_type !== "agent") {
      return think(turn, 600, 64, { calls: [ask(helper, body.slice(0, 60), body)] });
    }
    return think(turn, 500, 90, {
      calls: [call("task_complete", { finish_message: `Done: ${turn.messages[0].message.body}` })],
    });
  };

  const worker = (
    name: string,
    steps: (turn: Turn, done: number, asked: ReturnType<typeof progress>) => Promise<TurnResult>,
    actions: readonly ReturnType<typeof action>[],
  ) =>
    defineAgent({
      name,
      commTargets: ["lead"],
      actions: [...actions],
      run: async (turn) => {
        const asked = progress(turn);
        return await steps(turn, asked.results, asked);
      },
    });

  const metrics = worker(
    "metrics",
    async (turn, done, { subject }) => {
      if (done === 0) {
        return await think(turn, 900, 415, {
          reasoning: "Two series: the latency histogram and the pool.",
          calls: [
            call("query_metrics", {
              query:
                'histogram_quantile(0.99, sum by (le) (rate(http_seconds_bucket{service="checkout-api"}[1m])))',
            }),
            call("query_metrics", { query: "max by (pod) (db_pool_waiting)" }),
          ],
        });
      }
      return await think(turn, 1_000, 104, {
        calls: [
          respond(
            "lead",
            subject,
            "Step at 18:42:10 on all pods at once, all routes that use the database. CPU and memory flat; pool waits rise from 0 to 38.",
          ),
        ],
      });
    },
    [queryMetrics],
  );
  const logs = worker(
    "logs",
    async (turn, done, { subject, body }) => {
      if (done === 0)
        return await think(turn, 700, 385, {
          calls: [call("search_logs", { service: "checkout-api", since: "18:30", level: "error" })],
        });
      if (done === 1 && /18:30/.test(body))
        return await think(turn, 800, 175, {
          calls: [call("search_logs", { service: "checkout-api", since: "18:41", level: "error" })],
        });
      return await think(turn, 700, 220, {
        calls: [
          respond(
            "lead",
            subject,
            "One new message: `timeout waiting for a connection (pool size 8)`, 1,204 times since 18:42, about 160 a minute. Nothing else changed.",
          ),
        ],
      });
    },
    [searchLogs],
  );
  const code = worker(
    "code",
    async (turn, done, { subject }) => {
      if (done === 0)
        return await think(turn, 1_200, 365, { calls: [call("git_log", { path: "services/checkout-api" })] });
      if (done === 1)
        return await think(turn, 1_500, 368, {
          calls: [call("read_file", { path: "services/checkout-api/config/pool.yaml" })],
        });
      return await think(turn, 800, 256, {
        calls: [
          respond(
            "lead",
            subject,
            "One candidate: 4f2c1e0 'share pool settings between services' (18:31, deployed 18:40). checkout-api now takes the default of 8 connections; it had 40.",
          ),
        ],
      });
    },
    [gitLog, readFile],
  );
  const comms = worker(
    "comms",
    async (turn, done, { subject }) => {
      if (done === 0)
        return await think(turn, 1_100, 272, {
          calls: [
            call("post_status", {
              text: "Between 18:42 and 19:58 UTC checkout was slow. A configuration change was rolled back.",
            }),
          ],
        });
      return await think(turn, 900, 239, {
        calls: [respond("lead", subject, "Published as incident 2291.")],
      });
    },
    [postStatus],
  );

  return defineSwarm({
    name: "ops",
    version: "2.3.0",
    description: "Looks into incidents.",
    agents: [lead, metrics, logs, code, comms],
    enableInterswarm: vendor,
    breakpointTools: ["approve_rollback"],
  });
}
