/** Figures over time: what the server remembers, then one row a second from the feed. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { onFeed, wantStats } from "./feed.js";
import type { StatsPage } from "./shapes.js";
import { useRequest } from "./use.js";

export type Span = "15m" | "24h";

export interface Series {
  readonly at: readonly number[];
  readonly column: (name: string) => readonly (number | null)[];
  readonly last: (name: string) => number | null;
  /** The limit in force, for columns that have one. */
  readonly limit: (name: string) => number | undefined;
}

const KEPT = 900;

export function useStats(span: Span): {
  readonly series: Series | undefined;
  readonly error: Error | undefined;
  readonly server: StatsPage["server"];
} {
  const step = span === "15m" ? "1s" : "1m";
  const { value, error } = useRequest<StatsPage>("admin/stats", { step }, span === "15m" ? 0 : 60_000);
  const [rows, setRows] = useState<readonly (readonly (number | null)[])[]>([]);
  useEffect(() => {
    if (value !== undefined) setRows(value.rows);
  }, [value]);
  useEffect(() => {
    if (span !== "15m") return;
    wantStats(true);
    const stop = onFeed("stats", ({ row }) =>
      setRows((before) => {
        const last = before.at(-1)?.[0] ?? 0;
        return (row[0] ?? 0) > last ? [...before.slice(-KEPT + 1), row] : before;
      }),
    );
    return () => {
      stop();
      wantStats(false);
    };
  }, [span]);
  const series = useMemo(() => {
    if (value === undefined) return undefined;
    const index = new Map(value.columns.map((name, at) => [name, at]));
    const column = (name: string) => rows.map((row) => row[index.get(name) ?? -1] ?? null);
    return {
      at: rows.map((row) => row[0] ?? 0),
      column,
      last: (name: string) => column(name).findLast((each) => each !== null) ?? null,
      limit: (name: string) => value.limits?.[name],
    };
  }, [rows, value]);
  return { series, error, server: value?.server };
}
