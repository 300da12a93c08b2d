/** Other swarms as lines. */
import type { RemoteSwarm } from "../client/index.js";
import { harmless, type Terminal } from "./terminal.js";

export function swarmTable(swarms: readonly RemoteSwarm[], { colours }: Pick<Terminal, "colours">): string[] {
  const rows = swarms.map((swarm) => ({
    name: harmless(swarm.swarm_name),
    state: swarm.is_active === true ? "active" : "inactive",
    latency: typeof swarm.latency === "number" ? `${Math.round(swarm.latency * 1000)} ms` : "-",
    url: harmless(swarm.base_url ?? "-"),
    notes: harmless(notesOn(swarm)),
  }));
  const widest = (pick: (row: (typeof rows)[number]) => string) =>
    Math.max(0, ...rows.map((row) => pick(row).length));
  const name = widest((row) => row.name);
  const latency = widest((row) => row.latency);
  const url = widest((row) => row.url);
  return rows.map((row) => {
    const state = row.state.padEnd("inactive".length);
    const shown = row.state === "active" ? colours.green(state) : colours.red(state);
    const line = `${row.name.padEnd(name)}  ${shown}  ${row.latency.padStart(latency)}  ${row.url.padEnd(url)}`;
    return row.notes === "" ? line.trimEnd() : `${line}  ${row.notes}`;
  });
}

function notesOn(swarm: RemoteSwarm): string {
  const seen = swarm.last_seen ?? undefined;
  const reference = swarm.auth_ref ?? undefined;
  const notes = [
    swarm.is_active === true ? undefined : seen === undefined ? "never seen" : `last seen ${seen}`,
    swarm.auth_state === "needs token" ? `needs token ${reference ?? ""}`.trimEnd() : undefined,
    swarm.auth_state === "none" ? "no token" : undefined,
    swarm.volatile === true ? "volatile" : undefined,
  ];
  return notes.filter((note) => note !== undefined).join(", ");
}
