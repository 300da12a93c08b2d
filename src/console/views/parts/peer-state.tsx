/** Whether another swarm answers, as a cell of a table. */
import type { Peer } from "../../data/shapes.js";
import { plural } from "../../model/words.js";

export function PeerState({ peer }: { readonly peer: Peer }) {
  const failures = peer.failures ?? 0;
  return (
    <td class={`nowrap ${peer.is_active === true ? "good" : "bad"}`}>
      {peer.is_active === true ? "active" : "✗ inactive"}
      {failures > 0 && <span class="dim"> · {plural(failures, "failure")}</span>}
    </td>
  );
}
