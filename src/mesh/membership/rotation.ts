/** What the new key signs in a `key_rotated` message: bound to swarm and agent, so that it fits nowhere else. */
export function rotationText(swarmId: string, agentId: string, publicKey: string): Buffer {
  return Buffer.from(`mailroom key rotation\n${swarmId}\n${agentId}\n${publicKey}`, "utf8");
}
