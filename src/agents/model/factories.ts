/** The model agents of swarm files: `mail:agent`, `mail:action-agent` and `mail:supervisor` (mail.md 8.3). */
import { AgentParamsError } from "../errors.js";
import type { AgentFactory, AgentWiring } from "../factory.js";
import { agentFromParams, asFindings, type ModelSurroundings, planFor } from "./agent.js";
import { assertUsualKey, type Environment, hasCredentials, planConnection } from "./connection.js";
import { readModelParams } from "./params.js";

export type ModelAgentKind = "agent" | "action-agent" | "supervisor";

export function modelFactory(kind: ModelAgentKind, surroundings: ModelSurroundings = {}): AgentFactory {
  return (wiring) => {
    checkKind(kind, wiring);
    const params = readModelParams(wiring.params, (finding) => wiring.warn(finding));
    if (wiring.untrusted === true) asFindings(() => assertUsualKey(params));
    const connection = planFor(params, wiring.toolFormat, surroundings.env ?? process.env);
    if (!hasCredentials(connection) && connection.credentials.kind === "key") {
      wiring.warn({
        at: ["llm"],
        message: `there is no key for '${params.llm}' yet`,
        hint: `set ${connection.credentials.variable} before you start the swarm`,
      });
    }
    return agentFromParams(params, wiring.toolFormat, surroundings);
  };
}

/** Whether a model could be asked with these parameters: it is known, and its key is there. */
export function isModelAtHand(
  params: Readonly<Record<string, unknown>>,
  toolFormat: "completions" | "responses",
  env: Environment = process.env,
): boolean {
  try {
    const read = readModelParams({ ...params, system: "" });
    return hasCredentials(planConnection({ ...read, toolFormat }, env));
  } catch {
    return false;
  }
}

function checkKind(kind: ModelAgentKind, wiring: AgentWiring): void {
  switch (kind) {
    case "agent":
      return;
    case "action-agent":
      if (wiring.tools.length > 0) return;
      throw new AgentParamsError("an action agent", [
        {
          at: [],
          message: "an action agent needs at least one action",
          hint: "list its actions, or use mail:agent",
        },
      ]);
    case "supervisor":
      // Decisions B15: the right to complete tasks is the agent's, whatever made it.
      if (wiring.canCompleteTasks) return;
      wiring.warn({
        at: [],
        message: "this supervisor may not complete tasks",
        hint: "set can_complete_tasks to true, or use mail:agent",
      });
  }
}
