/** Where the agents of a swarm stand in a drawing: columns by distance from the entrypoints, order by neighbors. */

export interface GraphNode {
  readonly id: string;
  readonly kind: "people" | "agent" | "foreign";
  readonly entry?: boolean;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
}

export interface Placed {
  readonly id: string;
  /** 0 is the world outside: people and other swarms. */
  readonly column: number;
  /** 0 to 1, from top to bottom. */
  readonly y: number;
}

const PASSES = 4;

export function layout(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Placed[] {
  const columns = columnsOf(nodes, edges);
  const neighbors = new Map<string, Set<string>>();
  for (const { from, to } of edges) {
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      const known = neighbors.get(one) ?? new Set();
      neighbors.set(one, known.add(other));
    }
  }
  const rows = new Map<number, string[]>();
  for (const { id } of nodes) {
    const column = columns.get(id) ?? 1;
    rows.set(column, [...(rows.get(column) ?? []), id]);
  }
  const place = new Map<string, number>();
  const settle = () => {
    for (const ids of rows.values()) {
      for (const [index, id] of ids.entries()) place.set(id, (index + 0.5) / ids.length);
    }
  };
  settle();
  for (let pass = 0; pass < PASSES; pass++) {
    for (const ids of rows.values()) {
      const pull = new Map(
        ids.map((id) => [
          id,
          mean(
            [...(neighbors.get(id) ?? [])].map((each) => place.get(each) ?? 0.5),
            place.get(id) ?? 0.5,
          ),
        ]),
      );
      ids.sort((a, b) => (pull.get(a) ?? 0) - (pull.get(b) ?? 0) || (a < b ? -1 : 1));
    }
    settle();
  }
  return nodes.map(({ id }) => ({ id, column: columns.get(id) ?? 1, y: place.get(id) ?? 0.5 }));
}

function mean(values: readonly number[], otherwise: number): number {
  return values.length === 0 ? otherwise : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function columnsOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Map<string, number> {
  const columns = new Map<string, number>();
  for (const { id, kind } of nodes) if (kind !== "agent") columns.set(id, 0);
  const agents = nodes.filter(({ kind }) => kind === "agent");
  const entries = agents.filter(({ entry }) => entry === true);
  let front = (entries.length > 0 ? entries : agents.slice(0, 1)).map(({ id }) => id);
  for (const id of front) columns.set(id, 1);
  for (let column = 2; front.length > 0; column++) {
    const next = new Set<string>();
    for (const { from, to } of edges) if (front.includes(from) && !columns.has(to)) next.add(to);
    for (const id of next) columns.set(id, column);
    front = [...next];
  }
  const last = Math.max(1, ...columns.values());
  for (const { id } of agents) if (!columns.has(id)) columns.set(id, last === 1 ? 2 : last);
  return columns;
}
