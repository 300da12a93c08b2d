/** How the server does, over time. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { isAdmin } from "../../data/api.js";
import { hello } from "../../data/feed.js";
import { type Series, type Span, useStats } from "../../data/stats.js";
import { useRequest } from "../../data/use.js";
import { bytes, clock, dateAndTime, duration, grouped, plural } from "../../model/words.js";
import { theme } from "../../nav/theme.js";
import { useTop } from "../../nav/title.js";
import { colorOf } from "../../paint/colors.js";
import { Panel, useNow } from "../../ui/kit.js";
import { ForAdmins, Page } from "../parts/page.js";
import { SearchButton } from "../parts/search-button.js";
import { ErrorState, Waiting } from "../parts/states.js";

interface Chart {
  readonly title: string;
  readonly unit: "count" | "ms" | "bytes";
  readonly lines: readonly { readonly column: string; readonly name: string; readonly color: string }[];
}

const CHARTS: readonly Chart[] = [
  {
    title: "Tasks by outcome",
    unit: "count",
    lines: [
      { column: "opened", name: "opened", color: "--accent" },
      { column: "completed", name: "completed", color: "--good" },
      { column: "failed", name: "failed", color: "--bad" },
    ],
  },
  {
    title: "Turns",
    unit: "count",
    lines: [
      { column: "turns", name: "turns", color: "--accent" },
      { column: "failed_turns", name: "failed", color: "--bad" },
    ],
  },
  {
    title: "Time of a turn",
    unit: "ms",
    lines: [
      { column: "turn_p50", name: "p50", color: "--accent" },
      { column: "turn_p99", name: "p99", color: "--wait" },
    ],
  },
  {
    title: "Commits and entries",
    unit: "count",
    lines: [
      { column: "commits", name: "commits", color: "--accent" },
      { column: "entries", name: "entries", color: "--agent-2" },
    ],
  },
  {
    title: "Time of a commit",
    unit: "ms",
    lines: [
      { column: "commit_p50", name: "p50", color: "--accent" },
      { column: "commit_p99", name: "p99", color: "--wait" },
    ],
  },
  {
    title: "Running and waiting",
    unit: "count",
    lines: [
      { column: "running", name: "tasks", color: "--accent" },
      { column: "turns_running", name: "turns", color: "--agent-2" },
      { column: "outbox_waiting", name: "mail to others", color: "--wait" },
    ],
  },
  {
    title: "Event loop lag, p99",
    unit: "ms",
    lines: [{ column: "loop_lag_p99", name: "p99", color: "--wait" }],
  },
  {
    title: "Memory and store",
    unit: "bytes",
    lines: [
      { column: "rss_bytes", name: "process", color: "--accent" },
      { column: "heap_bytes", name: "heap", color: "--agent-2" },
      { column: "store_bytes", name: "store", color: "--wait" },
    ],
  },
];

const FORMAT: Readonly<Record<Chart["unit"], (value: number) => string>> = {
  count: (value) => (value < 10 && value % 1 !== 0 ? value.toFixed(1) : grouped(value)),
  ms: (value) => (value > 0 && value < 10 ? `${value.toFixed(1)} ms` : duration(value)),
  bytes,
};

/** Marks of an axis are round numbers. */
const AXIS: typeof FORMAT = {
  ...FORMAT,
  ms: (value) => (value < 1_000 ? `${value} ms` : `${value / 1_000} s`),
  bytes: (value) => bytes(value).replace(/\.0+ /, " "),
};

interface Health {
  readonly status: string;
  readonly taking_up?: { readonly done: number; readonly of: number };
}

export default function System() {
  const [span, setSpan] = useState<Span>("15m");
  const { series, error } = useStats(span);
  const health = useRequest<Health>("health", {}, 10_000);
  const admin = isAdmin();
  useTop(
    "System",
    () => ({
      left: <h1>System</h1>,
      right: (
        <>
          <SearchButton />
          <span class="row-of">
            {(["15m", "24h"] as const).map((each) => (
              <button
                type="button"
                class="chip"
                key={each}
                aria-pressed={each === span}
                onClick={() => setSpan(each)}
              >
                {each === "15m" ? "15 min" : "24 h"}
              </button>
            ))}
          </span>
        </>
      ),
    }),
    [span],
  );
  if (!admin) return <ForAdmins what="The figures of the server are shown to admins." />;
  if (error !== undefined) return <ErrorState error={error} />;
  if (series === undefined) return <Waiting />;
  return (
    <Page label="System">
      <div class="charts">
        {CHARTS.map((chart) => (
          <Panel title={chart.title} key={chart.title} note={<Legend chart={chart} series={series} />}>
            <Plot chart={chart} series={series} />
          </Panel>
        ))}
      </div>
      <Panel title="Server" class="server-facts">
        <div class="inside">
          <Facts health={health.value} series={series} />
        </div>
      </Panel>
    </Page>
  );
}

function Facts({ health, series }: { readonly health: Health | undefined; readonly series: Series }) {
  const now = useNow();
  const greeting = hello.value;
  const rows: [string, string][] = [
    ["Health", health?.status ?? "unknown"],
    ["Version", greeting?.version ?? ""],
    [
      "Started",
      greeting === undefined
        ? ""
        : `${dateAndTime(greeting.started_at)}, ${duration(now - greeting.started_at)} ago`,
    ],
    ["Streams", grouped(series.last("streams") ?? 0)],
    ["In memory", plural(series.last("in_memory") ?? 0, "task")],
    ["Waiting writes", grouped(series.last("writes_waiting") ?? 0)],
    ["Store", bytes(series.last("store_bytes") ?? 0)],
    ["Write-ahead log", bytes(series.last("wal_bytes") ?? 0)],
  ];
  if (health?.taking_up !== undefined)
    rows.push(["Recovering", `${grouped(health.taking_up.done)} of ${plural(health.taking_up.of, "task")}`]);
  return (
    <dl class="facts wide-facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Legend({ chart, series }: { readonly chart: Chart; readonly series: Series }) {
  return (
    <span class="chart-legend">
      {chart.lines.map(({ column, name, color }) => {
        const value = series.last(column);
        return (
          <span key={column}>
            <i class={`line-mark m${color}`} /> {name}{" "}
            <b class="num">{value === null ? "–" : FORMAT[chart.unit](value)}</b>
          </span>
        );
      })}
    </span>
  );
}

function Plot({ chart, series }: { readonly chart: Chart; readonly series: Series }) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const shade = theme.value;
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const axis = {
      stroke: colorOf("--text-2"),
      grid: { stroke: colorOf("--line"), width: 1 },
      ticks: { show: false },
      font: "11px sans-serif",
    };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: 128,
        legend: { show: false },
        padding: [8, 20, 0, 0],
        cursor: { sync: { key: "system" }, points: { show: false }, y: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1e-6) * 1.08] } },
        axes: [
          {
            ...axis,
            size: 24,
            space: 70,
            values: (_, values) => values.map((value) => clock(value * 1_000, false)),
          },
          {
            ...axis,
            size: 62,
            space: 34,
            values: (_, values) => values.map((value) => AXIS[chart.unit](value)),
          },
        ],
        series: [
          {},
          ...chart.lines.map(({ name, color }) => ({
            label: name,
            stroke: colorOf(color),
            width: 1.3,
            points: { show: false },
            spanGaps: true,
          })),
        ],
      },
      [[], ...chart.lines.map(() => [])],
      element,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 128 }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [shade]);
  useEffect(() => {
    plot.current?.setData([
      series.at.map((at) => at / 1_000),
      ...chart.lines.map(({ column }) => [...series.column(column)]),
    ]);
  }, [series, shade]);
  return (
    <div
      class="plot"
      ref={host}
      role="img"
      aria-label={`${chart.title}, ${chart.lines.map(({ name }) => name).join(", ")}`}
    />
  );
}
