/** What an admin can do with another swarm. */
import { request } from "../../data/api.js";
import type { Peer } from "../../data/shapes.js";
import { Act } from "../../ui/table.js";

interface PeerActsProps {
  readonly peer: Peer;
  readonly onDone: () => void;
  /** Default: `onDone`. */
  readonly onRemoved?: () => void;
}

export function PeerActs({ peer, onDone, onRemoved = onDone }: PeerActsProps) {
  const path = `swarms/${encodeURIComponent(peer.swarm_name)}`;
  const ping = async () => {
    const { ok, reason } = await request<{ ok: boolean; reason?: string | null }>(`${path}/ping`, {
      method: "POST",
    });
    if (!ok) throw new Error(`${peer.swarm_name} did not answer: ${reason ?? "no reason given"}`);
  };
  return (
    <>
      <Act name="Ping" done={`${peer.swarm_name} answered.`} run={ping} after={onDone} />{" "}
      <Act
        name="Remove"
        danger
        sure
        done="Removed."
        run={() => request(path, { method: "DELETE" })}
        after={onRemoved}
      />
    </>
  );
}
