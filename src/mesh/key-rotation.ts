/** A new key for an agent: announced to every swarm by the old key, and proven by the new one. */
import type { RowWrite } from "../engine/ports.js";
import type { MeshCore } from "./core.js";
import { BROADCAST } from "./identity/agent-id.js";
import type { NextKey } from "./identity/key-file.js";
import { othersOf } from "./membership/operations.js";
import { rotationText } from "./membership/rotation.js";
import { writeSystemContent } from "./membership/system-content.js";
import type { Swarm } from "./membership/types.js";
import type { ViewWrite } from "./writes.js";

/**
 * In one commit for all swarms, from which it counts. A member that hears of it too late asks our endpoint for the key
 * (ASP: Key Refresh).
 */
export function rotateKey(core: MeshCore, next: Pick<NextKey, "pair" | "install">): Promise<void> {
  return core.exclusive(async () => {
    const swarms = [...core.view.swarms.values()];
    const writes = swarms.map((swarm) => ownKey(core, swarm, next.pair.publicKey.text));
    const told = swarms.flatMap((swarm) => announcement(core, swarm, next));
    await core.parts.store.commit({ appends: [], rows: [...writes, ...told] });
    core.follow(writes);
    core.usePair(next.pair);
    core.onOutgoing();
    next.install();
  });
}

function ownKey({ self }: MeshCore, { id: swarmId, members }: Swarm, publicKey: string): ViewWrite {
  const member = { ...(members.get(self.agentId) ?? self), publicKey };
  return { kind: "mesh.member.put", swarmId, member };
}

/** Signed now, because the key that it needs is on its way out. */
function announcement(core: MeshCore, swarm: Swarm, { pair }: Pick<NextKey, "pair">): RowWrite[] {
  const public_key = pair.publicKey.text;
  const proof = pair.sign(rotationText(swarm.id, core.id, public_key)).toString("base64");
  const content = writeSystemContent("key_rotated", core.id, { public_key, proof });
  const to = othersOf(swarm, core.id);
  const outgoing = {
    recipient: BROADCAST,
    type: "system",
    content,
    to,
    signNow: true,
  } as const;
  return core.outgoingRows(swarm.id, outgoing).rows;
}
