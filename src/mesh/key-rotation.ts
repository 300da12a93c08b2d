/** A new key for an agent: announced to every swarm by the old key, and proven by the new one. */
import type { MeshCore, Outgoing } from "./core.js";
import { BROADCAST } from "./identity/agent-id.js";
import type { KeyPair } from "./identity/keys.js";
import { othersOf } from "./membership/operations.js";
import { rotationText } from "./membership/rotation.js";
import { writeSystemContent } from "./membership/system-content.js";
import type { MeshRowWrite } from "./writes.js";

/**
 * `install` makes it the key of the next process, too. A member that hears of it too late asks our endpoint for the key
 * (ASP: Key Refresh).
 */
export function rotateKey(core: MeshCore, next: KeyPair, install: () => void): Promise<void> {
  return core.exclusive(async () => {
    const publicKey = next.publicKey.text;
    for (const swarm of [...core.view.swarms.values()]) {
      const own = swarm.members.get(core.id);
      const proof = next.sign(rotationText(swarm.id, core.id, publicKey)).toString("base64");
      const content = writeSystemContent("key_rotated", core.id, { public_key: publicKey, proof });
      const writes: MeshRowWrite[] =
        own === undefined
          ? []
          : [{ kind: "mesh.member.put", swarmId: swarm.id, member: { ...own, publicKey } }];
      const to = othersOf(swarm, core.id);
      const announcement: Outgoing = { recipient: BROADCAST, type: "system", content, to, signNow: true };
      await core.commit(writes, swarm.id, [announcement]);
    }
    install();
    core.usePair(next);
  });
}
