/** Who writes to whom: agents as boxes, messages as curves, their width by number. */
import type { SwarmDump, Traffic } from "../../data/shapes.js";
import { type GraphNode, layout } from "../../model/graph.js";
import { visibleString } from "../../model/visible-text.js";
import { duration, grouped, plural } from "../../model/words.js";

interface GraphProps {
  readonly agents: SwarmDump["swarm"]["agents"];
  readonly swarm: string;
  readonly traffic: Traffic | undefined;
}

const WIDTH = 730;
const BOX = { width: 172, height: 50 };
const OUTSIDE = 124;

function cut(text: string, most = 18): string {
  const shown = visibleString(text);
  return shown.length > most ? `${shown.slice(0, most - 1)}…` : shown;
}

export function Graph({ agents, swarm, traffic }: GraphProps) {
  const known = new Set(agents.map(({ name }) => name));
  const isPerson = (name: string) => name === "user" || name === "admin" || name === "people";
  const nodeOf = (name: string) => (isPerson(name) ? "people" : name);
  /** One curve for each direction. */
  const flows = new Map<
    string,
    { from: string; to: string; messages: number; failed: number; answers: boolean }
  >();
  for (const edge of traffic?.edges ?? []) {
    const [from, to] = [nodeOf(edge.from), nodeOf(edge.to)];
    if (edge.from === "system" || edge.to === "system") continue;
    const key = `${from}\n${to}`;
    const flow = flows.get(key) ?? { from, to, messages: 0, failed: 0, answers: true };
    flow.messages += edge.messages;
    flow.failed += edge.failed;
    flow.answers &&= edge.type === "response" || edge.type === "completion";
    flows.set(key, flow);
  }
  const foreign = new Set<string>();
  for (const { from, to } of flows.values())
    for (const name of [from, to]) if (!known.has(name) && name !== "people") foreign.add(name);
  for (const { comm_targets } of agents)
    for (const target of comm_targets) if (target.includes("@")) foreign.add(target);
  const nodes: GraphNode[] = [
    { id: "people", kind: "people" },
    ...[...foreign].map((id) => ({ id, kind: "foreign" as const })),
    ...agents.map(({ name, enable_entrypoint }) => ({
      id: name,
      kind: "agent" as const,
      entry: enable_entrypoint,
    })),
  ];
  const edges = [
    ...agents
      .filter(({ enable_entrypoint }) => enable_entrypoint)
      .map(({ name }) => ({ from: "people", to: name })),
    ...agents.flatMap(({ name, comm_targets }) => comm_targets.map((to) => ({ from: name, to }))),
  ];
  const placed = layout(nodes, edges);
  const columns = Math.max(...placed.map(({ column }) => column), 1);
  const tallest = Math.max(
    ...[...Array(columns + 1).keys()].map((column) => placed.filter((each) => each.column === column).length),
  );
  const height = Math.max(300, tallest * 92);
  const inner = { left: 196, right: WIDTH - 16 };
  const at = new Map(
    placed.map(({ id, column, y }) => {
      const room = inner.right - inner.left - BOX.width - 28;
      const x =
        column === 0
          ? 16
          : columns === 1
            ? inner.left + 14 + room / 2
            : inner.left + 14 + ((column - 1) / (columns - 1)) * room;
      return [id, { x, y: 18 + y * (height - 36), width: column === 0 ? OUTSIDE : BOX.width }];
    }),
  );
  const most = Math.max(1, ...[...flows.values()].map(({ messages }) => messages));
  const figures = new Map(traffic?.agents.map((agent) => [agent.name, agent]));
  const window = Math.max(1, (traffic?.until ?? 1) - (traffic?.since ?? 0));
  return (
    <svg
      class="graph"
      viewBox={`0 0 ${WIDTH} ${height}`}
      role="img"
      aria-label={`Messages between ${plural(agents.length, "agent")}`}
    >
      <rect
        class="graph-swarm"
        x={inner.left}
        y={8}
        width={inner.right - inner.left}
        height={height - 16}
        rx="9"
      />
      <text class="graph-note" x={inner.left + 14} y={28}>
        {cut(swarm)}
      </text>
      {[...flows.values()].map((flow) => {
        const [from, to] = [at.get(flow.from), at.get(flow.to)];
        if (from === undefined || to === undefined) return null;
        const forward = from.x < to.x;
        const shift = forward ? -6 : 6;
        const [x1, x2] = [forward ? from.x + from.width : from.x, forward ? to.x : to.x + to.width];
        const [y1, y2] = [from.y + shift, to.y + shift];
        const bend = Math.max(30, Math.abs(x2 - x1) / 2) * (forward ? 1 : -1);
        const wide = 1 + (flow.messages / most) * 3;
        const tone =
          flow.failed > 0 && flow.failed >= flow.messages / 2 ? "bad" : flow.answers ? "back" : "ahead";
        const end = forward ? x2 - 4 : x2 + 4;
        // Numbers stand at the end that has room: outside of the swarm, or at an agent.
        const outside = [from, to].find(({ width }) => width === OUTSIDE);
        return (
          <g key={`${flow.from} ${flow.to}`} class={`flow ${tone}`}>
            <path
              d={`M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${end} ${y2}`}
              stroke-width={wide}
            />
            <path class="tip" d={forward ? `M${x2} ${y2} l-6 -3.500 v7z` : `M${x2} ${y2} l6 -3.500 v7z`} />
            {outside === undefined ? (
              <text x={forward ? x2 - 12 : x1 - 12} y={forward ? y2 - 6 : y1 + 13} text-anchor="end">
                {grouped(flow.messages)}
              </text>
            ) : (
              <text x={outside.x + outside.width + 11} y={outside.y + (forward ? -12 : 19)}>
                {grouped(flow.messages)}
              </text>
            )}
          </g>
        );
      })}
      {placed.map(({ id }) => {
        const place = at.get(id);
        if (place === undefined) return null;
        const index = agents.findIndex(({ name }) => name === id);
        const agent = agents[index];
        const figure = figures.get(id);
        const [name, other] = id === "people" ? ["people", ""] : id.split("@");
        const busy = figure === undefined ? 0 : Math.min(1, figure.busy / window);
        return (
          <g key={id} transform={`translate(${place.x} ${place.y - BOX.height / 2})`}>
            <rect
              class={agent === undefined && id !== "people" ? "graph-box dashed" : "graph-box"}
              width={place.width}
              height={BOX.height}
              rx="7"
            />
            {agent !== undefined && (
              <rect class={`graph-mark a${index % 8}`} x="10" y="11" width="8" height="8" rx="2" />
            )}
            <text class="graph-name" x={agent === undefined ? 10 : 24} y="19">
              {cut(name ?? id)}
            </text>
            {agent?.enable_entrypoint === true && (
              <text class="graph-note" x={place.width - 9} y="19" text-anchor="end">
                entry
              </text>
            )}
            <text class="graph-note" x="10" y="34">
              {agent === undefined
                ? other === undefined || other === ""
                  ? "write to it"
                  : `@${cut(other)}`
                : figure === undefined || figure.turns === 0
                  ? "no turn yet"
                  : figure.p50 === null
                    ? plural(figure.turns, "turn")
                    : `p50 ${duration(figure.p50)} · p99 ${duration(figure.p99 ?? 0)}`}
            </text>
            {agent !== undefined && (
              <>
                <rect class="graph-bar" x="10" y="40" width={place.width - 20} height="3" rx="1.500" />
                <rect
                  class="graph-busy"
                  x="10"
                  y="40"
                  width={Math.max(0, (place.width - 20) * busy)}
                  height="3"
                  rx="1.500"
                />
              </>
            )}
          </g>
        );
      })}
    </svg>
  );
}
