/** The model agents of swarm files: `mail:agent`, `mail:action-agent` and `mail:supervisor` (REF-20). */
import { urgentClock } from "../../base/index.js";
import { createFetch, createGuard, createHttpClient } from "../../net/index.js";
import { badAgentParams } from "../errors.js";
import type { AgentContext, AgentFactory } from "../factory.js";
import { agentFromParams, asFindings, type ModelEnvironment, planFor } from "./agent.js";
import { assertUsualKey, type EnvironmentVariables, hasCredentials, planConnection } from "./connection.js";
import { readModelParams } from "./params.js";

export type ModelAgentKind = "agent" | "action-agent" | "supervisor";

export function modelFactory(kind: ModelAgentKind, environment: ModelEnvironment = {}): AgentFactory {
  return (context) => {
    checkKind(kind, context);
    const params = readModelParams(context.params, (finding) => context.warn(finding));
    for (const llm of [params.llm, ...params.fallbacks]) {
      if (context.untrusted === true) asFindings(() => assertUsualKey({ ...params, llm }));
      const connection = planFor({ ...params, llm }, context.toolFormat, environment.env ?? process.env);
      if (!hasCredentials(connection) && connection.credentials.kind === "key") {
        context.warn({
          at: ["llm"],
          message: `no key for '${llm}'`,
          hint: `set ${connection.credentials.variable} before you start the swarm`,
        });
      }
    }
    // A URL that the operator did not choose must not reach the operator's network.
    const isForeign = context.untrusted === true && params.base_url !== undefined;
    const send = isForeign ? { fetch: guardedFetch(environment.allow ?? []) } : {};
    return agentFromParams(params, context.toolFormat, { ...environment, ...send });
  };
}

/** The time limit of a call is that of the agent, below this one. Milliseconds. */
const LONGEST_CALL = 3_600_000;

/** Reaches public addresses, and those that the operator allows. */
function guardedFetch(allow: readonly string[]): typeof fetch {
  const client = createHttpClient({
    guard: createGuard({ allow }),
    userAgent: "mailroom-model",
    clock: urgentClock,
  });
  return createFetch(client, { timeLimit: LONGEST_CALL, idleLimit: 0 });
}

/** Whether these parameters identify a model and its key is set. */
export function isModelAvailable(
  params: Readonly<Record<string, unknown>>,
  toolFormat: "completions" | "responses",
  env: EnvironmentVariables = process.env,
): boolean {
  try {
    const read = readModelParams({ ...params, system: "" });
    return hasCredentials(planConnection({ ...read, toolFormat }, env));
  } catch {
    return false;
  }
}

function checkKind(kind: ModelAgentKind, context: AgentContext): void {
  switch (kind) {
    case "agent":
      return;
    case "action-agent":
      if (context.tools.length > 0) return;
      throw badAgentParams("an action agent", [
        {
          at: [],
          message: "an action agent needs at least one action",
          hint: "list its actions, or use mail:agent",
        },
      ]);
    case "supervisor":
      // Permission to complete tasks comes from the agent's settings, not from its factory (decision B15).
      if (context.canCompleteTasks) return;
      context.warn({
        at: [],
        message: "this supervisor cannot complete tasks",
        hint: "set can_complete_tasks to true, or use mail:agent",
      });
  }
}
