/** ASP: Mute. Local only, with an event record. */
import { MailroomError } from "../base/index.js";
import type { MeshContext } from "./context.js";
import { checkAgentId } from "./identity/agent-id.js";
import type { Mute } from "./membership/types.js";

/** @throws MailroomError when the agent id is invalid */
export async function mute(context: MeshContext, of: Mute["of"], id: string, reason?: string): Promise<void> {
  const wrong = of === "agent" ? checkAgentId(id) : undefined;
  if (wrong !== undefined) throw new MailroomError("invalid_request", `the agent id ${wrong}`);
  const put: Mute = { of, id, at: context.now, ...(reason !== undefined && { reason }) };
  await context.exclusive(() => context.commit([{ kind: "mesh.mute.put", mute: put }], id));
  await note(context, "member_muted", of, id, reason);
}

/** Returns whether it was muted. */
export async function unmute(context: MeshContext, of: Mute["of"], id: string): Promise<boolean> {
  const { mutedAgents, mutedSwarms } = context.view;
  const was = (of === "agent" ? mutedAgents : mutedSwarms).has(id);
  await context.exclusive(() => context.commit([{ kind: "mesh.mute.remove", of, id }], id));
  if (was) await note(context, "member_unmuted", of, id);
  return was;
}

/** Records the event in each swarm of which the agent is a member. */
async function note(
  context: MeshContext,
  action: string,
  of: Mute["of"],
  id: string,
  reason?: string,
): Promise<void> {
  const swarms = [...context.view.swarms.values()];
  const swarmIds =
    of === "swarm" ? [id] : swarms.filter(({ members }) => members.has(id)).map((one) => one.id);
  const agentId = of === "agent" ? id : context.id;
  for (const swarmId of swarmIds) {
    await context.recordEvent(swarmId, {
      action,
      agentId,
      initiatedBy: context.id,
      ...(reason !== undefined && { reason }),
    });
  }
}
