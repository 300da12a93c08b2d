/** The swarm: how it does, who writes to whom, its agents and neighbors. */
import { useState } from "preact/hooks";
import { isAdmin } from "../../data/api.js";
import { hello } from "../../data/feed.js";
import { otherSwarms } from "../../data/neighbors.js";
import type { MeshOverview, OutboxPage, Peer, SwarmDump, Traffic } from "../../data/shapes.js";
import { type Series, useStats } from "../../data/stats.js";
import { counts } from "../../data/tasks.js";
import { useRequest } from "../../data/use.js";
import { ago, bytes, duration, grouped, money, short } from "../../model/words.js";
import { href } from "../../nav/route.js";
import { useTop } from "../../nav/title.js";
import { agentClass } from "../../paint/colors.js";
import { SparkLine, shrink } from "../../paint/line.js";
import { Choice, Panel, useNow } from "../../ui/kit.js";
import { Table } from "../../ui/table.js";
import { Text } from "../../ui/text.js";
import { nextTry } from "../parts/outbox.js";
import { PeerState } from "../parts/peer-state.js";
import { SearchButton } from "../parts/search-button.js";
import { ErrorState, Waiting } from "../parts/states.js";
import { Graph } from "./graph.js";

const WINDOWS = { "5m": "5 min", "15m": "15 min", "1h": "1 h" } as const;
type Window = keyof typeof WINDOWS;
const MILLISECONDS: Readonly<Record<Window, number>> = { "5m": 300_000, "15m": 900_000, "1h": 3_600_000 };

export default function Swarm() {
  const [window, setWindow] = useState<Window>("15m");
  const admin = isAdmin();
  const dump = useRequest<SwarmDump>(admin ? "swarms/dump" : undefined);
  const traffic = useRequest<Traffic>(
    admin ? "admin/traffic" : undefined,
    { window: MILLISECONDS[window] },
    5_000,
  );
  const name = hello.value?.swarm ?? dump.value?.swarm_name ?? "";
  useTop(
    `Swarm ${name}`,
    () => ({
      left: (
        <>
          <h1>
            Swarm <Text>{name}</Text>
          </h1>
          {dump.value !== undefined && <span class="tag wide-only">v{dump.value.swarm.version}</span>}
          {hello.value !== undefined && (
            <span class="tag mono wide-only">{hello.value.definition.slice(0, 10)}</span>
          )}
        </>
      ),
      right: (
        <>
          <SearchButton />
          {admin && <Choice of={WINDOWS} value={window} onPick={setWindow} />}
        </>
      ),
    }),
    [name, window, dump.value, hello.value],
  );
  if (!admin) {
    return (
      <div class="empty">
        <h2>
          Swarm <Text>{name}</Text>
        </h2>
        <p>Its definition and figures are for admins. The agents that worked for you are in your tasks.</p>
        <a class="button" href={href("tasks")}>
          Your tasks
        </a>
      </div>
    );
  }
  if (dump.error !== undefined) return <ErrorState error={dump.error} onRetry={dump.again} />;
  if (dump.value === undefined) return <Waiting />;
  const { swarm } = dump.value;
  return (
    <div class="page-body scroll swarm-page" tabIndex={0} role="region" aria-label="Swarm">
      <Tiles />
      <div class="swarm-columns">
        <Panel title="Who writes to whom" note={`messages in ${WINDOWS[window]}, width by number`}>
          <div class="inside scroll" tabIndex={0} role="region" aria-label="Messages between agents">
            <Graph agents={swarm.agents} swarm={swarm.name} traffic={traffic.value} />
          </div>
        </Panel>
        <div class="swarm-side">
          <Neighbors />
          <OnItsWay />
          <MeshMembers />
          <Wrong failures={traffic.value?.failures} />
        </div>
      </div>
      <Panel title="Agents" note={`last ${WINDOWS[window]}`}>
        <div class="table-scroll scroll" tabIndex={0} role="region" aria-label="Agents">
          <table class="grid">
            <thead>
              <tr>
                <th>Agent</th>
                <th>Model</th>
                <th>May</th>
                <th>Actions</th>
                <th class="right">Turns</th>
                <th class="right">Failed</th>
                <th class="right">Mail</th>
                <th class="right">p50</th>
                <th class="right">p99</th>
                <th class="right">Tokens</th>
                <th class="right">Cost</th>
              </tr>
            </thead>
            <tbody>
              {swarm.agents.map((agent, index) => {
                const figure = traffic.value?.agents.find((each) => each.name === agent.name);
                const tokens = figure === undefined ? 0 : figure.tokens.input + figure.tokens.output;
                return (
                  <tr key={agent.name}>
                    <td>
                      <span class="row-of">
                        <i class={agentClass(index)} />
                        <a
                          class="link"
                          href={href("tasks", undefined, { agent: agent.name })}
                          title="Its tasks"
                        >
                          <b>
                            <Text>{agent.name}</Text>
                          </b>
                        </a>
                      </span>
                    </td>
                    <td class="mono">
                      <Text>{figure?.model ?? agent.llm ?? agent.mind}</Text>
                    </td>
                    <td class="dim">
                      {[
                        agent.enable_entrypoint && "take tasks",
                        agent.can_complete_tasks && "complete",
                        agent.enable_interswarm && "other swarms",
                      ]
                        .filter(Boolean)
                        .join(", ")}
                    </td>
                    <td class="dim">
                      {agent.actions.map((action) => (
                        <span
                          key={action}
                          class={swarm.breakpoint_tools.includes(action) ? "wait" : ""}
                          title={
                            swarm.breakpoint_tools.includes(action) ? "A person answers this" : undefined
                          }
                        >
                          <Text>{action}</Text>
                          {swarm.breakpoint_tools.includes(action) ? " (asks) " : " "}
                        </span>
                      ))}
                    </td>
                    <td class="right">{figure === undefined ? "–" : grouped(figure.turns)}</td>
                    <td class={`right ${(figure?.failed ?? 0) > 0 ? "bad" : "dim"}`}>
                      {(figure?.failed ?? 0) > 0 ? grouped(figure?.failed ?? 0) : "–"}
                    </td>
                    <td class="right" title="Messages in its mailboxes now">
                      {grouped(figure?.waiting ?? 0)}
                    </td>
                    <td class="right">{figure?.p50 == null ? "–" : duration(figure.p50)}</td>
                    <td class="right">{figure?.p99 == null ? "–" : duration(figure.p99)}</td>
                    <td class="right dim">{tokens === 0 ? "–" : short(tokens)}</td>
                    <td class="right">{figure?.cost == null ? "–" : money(figure.cost)}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      </Panel>
    </div>
  );
}

function perSecond(values: readonly (number | null)[], seconds = 10): number {
  const last = values.slice(-seconds).map((value) => value ?? 0);
  return last.length === 0 ? 0 : last.reduce((sum, value) => sum + value, 0) / last.length;
}

function Tiles() {
  const { series, error } = useStats("15m");
  const total = counts.value;
  if (error !== undefined) return null;
  if (series === undefined) return <div class="tiles" />;
  const ended = series
    .column("completed")
    .map((value, index) => (value ?? 0) + (series.column("failed")[index] ?? 0));
  const peak = Math.max(0, ...ended);
  const rate = (name: string) => perSecond(series.column(name));
  return (
    <div class="tiles">
      <Tile
        name="Tasks finished"
        note={`peak ${peak}`}
        value={perSecond(ended).toFixed(1)}
        unit="/s"
        values={ended}
        color="--good"
      />
      <Tile
        name="Turns"
        note={`${series.last("turns_running") ?? 0} under way`}
        value={rate("turns").toFixed(1)}
        unit="/s"
        values={series.column("turns")}
        color="--accent"
      />
      <Tile
        name="Journal commits"
        note=""
        value={rate("commits").toFixed(1)}
        unit="/s"
        values={series.column("commits")}
        color="--accent"
      />
      <Tile
        name="Turn p99"
        note={`p50 ${figure(series, "turn_p50")}`}
        value={figure(series, "turn_p99")}
        values={series.column("turn_p99")}
        color="--wait"
      />
      <Tile
        name="Running tasks"
        note={`${grouped(total?.paused ?? 0)} ${total?.paused === 1 ? "needs" : "need"} you`}
        value={grouped(total?.running ?? series.last("running") ?? 0)}
        values={series.column("running")}
        color="--accent"
      />
      <Tile
        name="Event loop p99"
        note={`heap ${bytes(series.last("heap_bytes") ?? 0).replace(/\.\d+/, "")}`}
        value={figure(series, "loop_lag_p99")}
        values={series.column("loop_lag_p99")}
        color="--text-3"
      />
    </div>
  );
}

function figure(series: Series, name: string): string {
  const value = series.last(name);
  return value === null
    ? "–"
    : value < 1_000
      ? `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
      : duration(value);
}

function Tile({
  name,
  note,
  value,
  unit = "",
  values,
  color,
}: {
  readonly name: string;
  readonly note: string;
  readonly value: string;
  readonly unit?: string;
  readonly values: readonly (number | null)[];
  readonly color: string;
}) {
  return (
    <section class="tile" aria-label={name}>
      <header>
        <span>{name}</span>
        <span class="dim">{note}</span>
      </header>
      <p>
        <b class="num">{value}</b> {unit}
      </p>
      <SparkLine values={shrink(values, 300)} color={color} label={`${name} over the last 15 minutes`} />
    </section>
  );
}

function Neighbors() {
  const { value } = useRequest<{ swarms: Peer[] }>("swarms", {}, 10_000);
  const peers = otherSwarms(value?.swarms ?? []);
  return (
    <Panel
      title="Federation"
      note={<a href={href("federation")}>{peers.length === 0 ? "no other swarm" : "all"}</a>}
    >
      {peers.length === 0 ? (
        <p class="inside dim">This server knows no other swarm.</p>
      ) : (
        <table class="grid fixed peers">
          <thead>
            <tr>
              <th>Swarm</th>
              <th>State</th>
              <th class="right">Latency</th>
              <th class="right">Waiting</th>
              <th>Last report</th>
            </tr>
          </thead>
          <tbody>
            {peers.slice(0, 5).map((peer) => (
              <tr key={peer.swarm_name}>
                <td class="cut">
                  <a class="link" href={href("federation", peer.swarm_name)}>
                    <b>
                      <Text>{peer.swarm_name}</Text>
                    </b>
                  </a>
                </td>
                <PeerState peer={peer} />
                <td class="right">{peer.latency == null ? "–" : duration(peer.latency * 1_000)}</td>
                <td class={`right ${(peer.waiting ?? 0) > 0 ? "wait" : "dim"}`}>
                  {grouped(peer.waiting ?? 0)}
                </td>
                <td class="cut dim">
                  <Text>{peer.last_error ?? peer.swarm_description ?? peer.base_url ?? ""}</Text>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function OnItsWay() {
  const now = useNow();
  const { value } = useRequest<OutboxPage>(
    "admin/outbox",
    { queue: "federation", status: "waiting", limit: 5 },
    5_000,
  );
  const items = value?.items ?? [];
  if (items.length === 0) return null;
  return (
    <Panel title="Mail on its way" note="oldest first">
      <table class="grid fixed">
        <thead>
          <tr>
            <th>To</th>
            <th>Tries</th>
            <th>Next try</th>
            <th>Why it waits</th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={item.id}>
              <td class="cut">
                <Text>{item.to ?? item.target}</Text>
              </td>
              <td>{item.attempts}</td>
              <td>{nextTry(item, now)}</td>
              <td class="cut dim">
                <Text>{item.reason ?? "not tried yet"}</Text>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

/** Members of the mesh and who asks to join; nothing where there is no mesh. */
function MeshMembers() {
  const { value } = useRequest<MeshOverview>("admin/mesh", {}, 15_000);
  const rows = (value?.swarms ?? []).flatMap((swarm) => [
    ...swarm.pending.map((agent) => ({ ...agent, role: "asks to join", tone: "wait" })),
    ...swarm.members.map((agent) => ({
      ...agent,
      role: agent.agent_id === swarm.master ? "master" : "member",
      tone: "dim",
    })),
  ]);
  if (value === undefined || rows.length === 0) return null;
  return (
    <Panel title="Mesh" note={<a href={href("mesh")}>all</a>}>
      <Table label="Mesh" columns={["Agent", "Role", "Key"]} fixed>
        {rows.slice(0, 5).map(({ agent_id, role, tone, fingerprint }) => (
          <tr key={`${role} ${agent_id}`}>
            <td class="cut">
              <b>
                <Text>{agent_id}</Text>
              </b>
            </td>
            <td class={tone}>{role}</td>
            <td class="mono cut">{fingerprint}</td>
          </tr>
        ))}
      </Table>
    </Panel>
  );
}

function Wrong({ failures }: { readonly failures: Traffic["failures"] }) {
  const now = useNow(5_000);
  if (failures === undefined || failures.length === 0) {
    return (
      <Panel title="What went wrong">
        <p class="inside dim">Nothing failed.</p>
      </Panel>
    );
  }
  return (
    <Panel title="What went wrong" note="by agent and message">
      <table class="grid fixed wrong">
        <thead>
          <tr>
            <th class="right">Count</th>
            <th>Agent</th>
            <th>Message</th>
            <th class="right">Last</th>
          </tr>
        </thead>
        <tbody>
          {failures.slice(0, 8).map(({ agent, message, count, last, key, number }) => (
            <tr key={`${agent}\n${message}`}>
              <td class="right bad">{grouped(count)}</td>
              <td class="cut">
                <Text>{agent ?? "task"}</Text>
              </td>
              <td class="cut">
                <a class="link" href={href("all", key, { sel: String(number) })} title={message}>
                  <Text>{message}</Text>
                </a>
              </td>
              <td class="right dim nowrap">{ago(now - last)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
