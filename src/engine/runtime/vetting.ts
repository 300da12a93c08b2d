/** Asks the actions about the calls of an answer: are the arguments valid, and must a person approve? */
import { messageOf, type Report } from "../../base/index.js";
import type { AgentToolCall } from "../../mail/index.js";
import type { Action, ApprovalContext } from "../agent.js";
import type { VettedCall } from "../task/commands.js";
import type { DefinitionIndex } from "./definition-index.js";
import type { LiveTask } from "./task-work.js";

/** Undefined if no call may need approval. Never rejects. */
export function vetCalls(
  { work, state, key }: LiveTask,
  agent: string,
  calls: readonly AgentToolCall[],
  definitionIndex: DefinitionIndex,
  report: Report,
): Promise<readonly VettedCall[]> | undefined {
  if (!definitionIndex.hasApprovals) return undefined;
  const vetted: Promise<VettedCall>[] = [];
  const offered = definitionIndex.agent(agent)?.tools ?? [];
  for (const [index, call] of calls.entries()) {
    const action = definitionIndex.action(call.name);
    if ((action?.approval ?? false) === false || action === undefined) continue;
    if (!offered.some(({ name }) => name === call.name)) continue;
    const context = { swarm: state.swarm, agent, task: work.facts, instance: work.instance, callId: call.id };
    vetted.push(
      vet(action, call, index, context).catch((cause: unknown) => {
        report({ code: "approval_check_failed", message: messageOf(cause), task: key, cause });
        return { index, approval: true };
      }),
    );
  }
  return vetted.length === 0 ? undefined : Promise.all(vetted);
}

async function vet(
  action: Action,
  call: AgentToolCall,
  index: number,
  context: ApprovalContext,
): Promise<VettedCall> {
  const checked = await action.check(call.args);
  if (!checked.ok) return { index, problem: `invalid arguments: ${checked.message}` };
  const { approval = false } = action;
  const needed = typeof approval === "function" ? await approval(checked.value, context) : approval;
  return { index, approval: needed };
}
