/** ASP: Mute. Local, with a note of it for those who watch here. */
import type { MeshCore } from "./core.js";
import { MeshError } from "./errors.js";
import { checkAgentId } from "./identity/agent-id.js";
import type { Mute } from "./membership/types.js";

/** @throws MeshError when no agent can have this id. */
export async function mute(core: MeshCore, of: Mute["of"], id: string, reason?: string): Promise<void> {
  const wrong = of === "agent" ? checkAgentId(id) : undefined;
  if (wrong !== undefined) throw new MeshError("invalid_request", `the agent id ${wrong}`);
  const put: Mute = { of, id, at: core.now, ...(reason !== undefined && { reason }) };
  await core.exclusive(() => core.commit([{ kind: "mesh.mute.put", mute: put }], id));
  await note(core, "member_muted", of, id, reason);
}

/** Whether it was muted. */
export async function unmute(core: MeshCore, of: Mute["of"], id: string): Promise<boolean> {
  const { mutedAgents, mutedSwarms } = core.view;
  const was = (of === "agent" ? mutedAgents : mutedSwarms).has(id);
  await core.exclusive(() => core.commit([{ kind: "mesh.mute.remove", of, id }], id));
  if (was) await note(core, "member_unmuted", of, id);
  return was;
}

/** In each swarm that the agent is in. */
async function note(
  core: MeshCore,
  action: string,
  of: Mute["of"],
  id: string,
  reason?: string,
): Promise<void> {
  const swarms = [...core.view.swarms.values()];
  const swarmIds =
    of === "swarm" ? [id] : swarms.filter(({ members }) => members.has(id)).map((one) => one.id);
  const agentId = of === "agent" ? id : core.id;
  for (const swarmId of swarmIds) {
    await core.note(swarmId, {
      action,
      agentId,
      initiatedBy: core.id,
      ...(reason !== undefined && { reason }),
    });
  }
}
