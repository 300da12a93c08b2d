/** How the server does, over time. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { isAdmin } from "../../data/api.js";
import { hello } from "../../data/feed.js";
import type { StatsPage, SwarmDump } from "../../data/shapes.js";
import { type Series, type Span, useStats } from "../../data/stats.js";
import { useRequest } from "../../data/use.js";
import { bytes, clock, dateAndTime, duration, grouped, plural } from "../../model/words.js";
import { theme } from "../../nav/theme.js";
import { useTop } from "../../nav/title.js";
import { colorOf } from "../../paint/colors.js";
import { Choice, Panel, useNow } from "../../ui/kit.js";
import { type Fact, FactList } from "../parts/facts.js";
import { ForAdmins, Page } from "../parts/page.js";
import { SearchButton } from "../parts/search-button.js";
import { ErrorState, Waiting } from "../parts/states.js";

interface Line {
  readonly column: string;
  readonly name: string;
  readonly color: string;
}

interface Chart {
  readonly title: string;
  readonly unit: "count" | "ms" | "bytes";
  readonly lines: readonly Line[];
}

const line = (column: string, name: string, color: string): Line => ({ column, name, color });
const times = (of: string) => [line(`${of}_p50`, "p50", "--accent"), line(`${of}_p99`, "p99", "--wait")];

const CHARTS: readonly Chart[] = [
  {
    title: "Tasks by outcome",
    unit: "count",
    lines: [
      line("opened", "opened", "--accent"),
      line("completed", "completed", "--good"),
      line("failed", "failed", "--bad"),
    ],
  },
  {
    title: "Turns",
    unit: "count",
    lines: [line("turns", "turns", "--accent"), line("failed_turns", "failed", "--bad")],
  },
  { title: "Time of a turn", unit: "ms", lines: times("turn") },
  {
    title: "Commits and entries",
    unit: "count",
    lines: [line("commits", "commits", "--accent"), line("entries", "entries", "--agent-2")],
  },
  { title: "Time of a commit", unit: "ms", lines: times("commit") },
  {
    title: "Running and waiting",
    unit: "count",
    lines: [
      line("running", "tasks", "--accent"),
      line("turns_running", "turns", "--agent-2"),
      line("outbox_waiting", "mail to others", "--wait"),
    ],
  },
  { title: "Event loop lag, p99", unit: "ms", lines: [line("loop_lag_p99", "p99", "--wait")] },
  {
    title: "Memory and store",
    unit: "bytes",
    lines: [
      line("rss_bytes", "process", "--accent"),
      line("heap_bytes", "heap", "--agent-2"),
      line("store_bytes", "store", "--wait"),
    ],
  },
];

const SPANS: Readonly<Record<Span, string>> = { "15m": "15 min", "24h": "24 h" };

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
  const { series, error, server } = useStats(span);
  const health = useRequest<Health>("health", {}, 10_000);
  const admin = isAdmin();
  const dump = useRequest<SwarmDump>(admin ? "swarms/dump" : undefined);
  const now = useNow();
  useTop(
    "System",
    () => ({
      left: <h1>System</h1>,
      right: (
        <>
          <SearchButton />
          <Choice of={SPANS} value={span} onPick={setSpan} />
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
      <div class="server-panels">
        <Panel title="Server">
          <div class="inside">
            <FactList rows={serverFacts(health.value, server, series, now)} />
          </div>
        </Panel>
        <Panel title="How full it is" note="now, of the limit in force">
          <Gauges series={series} />
        </Panel>
        <Panel title="Data">
          <div class="inside">
            <FactList rows={dataFacts(server, series)} />
          </div>
        </Panel>
        {dump.value !== undefined && (
          <Panel title="Limits of a task">
            <div class="inside">
              <FactList rows={taskLimits(dump.value.limits)} />
            </div>
          </Panel>
        )}
      </div>
    </Page>
  );
}

type ServerData = StatsPage["server"];

function serverFacts(health: Health | undefined, server: ServerData, series: Series, now: number): Fact[] {
  const greeting = hello.value;
  const recovering = health?.taking_up;
  return [
    ["Health", health?.status ?? "unknown"],
    ["Version", greeting?.version ?? ""],
    [
      "Started",
      greeting === undefined
        ? ""
        : `${dateAndTime(greeting.started_at)}, ${duration(now - greeting.started_at)} ago`,
    ],
    ["In memory", plural(series.last("in_memory") ?? 0, "task")],
    recovering === undefined
      ? ["Recovered", `${plural(server?.recovered_tasks ?? 0, "task")} at the start`]
      : ["Recovering", `${grouped(recovering.done)} of ${plural(recovering.of, "task")}`],
  ];
}

const DURABILITY: Readonly<Record<string, string>> = {
  fsync: "on disk before anything is acknowledged",
  fast: "a power failure can lose the last moments",
  memory: "in memory: nothing survives the process",
};

function dataFacts(server: ServerData, series: Series): Fact[] {
  const { durability = "", retention } = server ?? {};
  const kept = (ms: number) => (ms === 0 ? "forever" : `for ${duration(ms).replace(" 0 h", "")}`);
  return [
    ["Durability", DURABILITY[durability] ?? "–"],
    ["Store", bytes(series.last("store_bytes") ?? 0)],
    ["Write-ahead log", bytes(series.last("wal_bytes") ?? 0)],
    ...(retention === undefined
      ? []
      : ([
          [
            "Finished tasks",
            `kept ${kept(retention.tasks_ms)}${retention.tasks === 0 ? "" : `, the newest ${grouped(retention.tasks)}`}`,
          ],
          ["Audit log", `kept ${kept(retention.audit_ms)}`],
          ["Usage by day", `kept ${kept(retention.usage_ms)}`],
        ] as const)),
  ];
}

function taskLimits(limits: SwarmDump["limits"]): Fact[] {
  const of = (name: string) => limits[name] ?? 0;
  const some = (value: number, words: (value: number) => string) => (value === 0 ? "no limit" : words(value));
  return [
    ["Steps", some(of("max_steps"), grouped)],
    ["Time of a task", some(of("task_timeout_ms"), duration)],
    ["Time of a turn", duration(of("turn_timeout_ms"))],
    ["Time of an action", duration(of("action_timeout_ms"))],
    ["Wait for an approval", some(of("approval_timeout_ms"), duration)],
    ["Wait for another swarm", some(of("reply_timeout_ms"), duration)],
    ["Turns at once", grouped(of("turns_per_task"))],
    ["Actions at once", grouped(of("actions_per_task"))],
    ["Size", bytes(of("task_bytes"))],
  ];
}

const GAUGES: readonly (readonly [column: string, name: string])[] = [
  ["running", "Running tasks"],
  ["turns_running", "Turns"],
  ["streams", "Streams"],
  ["requests_waiting", "Requests that wait"],
  ["writes_waiting", "Writes that wait"],
];

function Gauges({ series }: { readonly series: Series }) {
  return (
    <table class="grid gauges">
      <tbody>
        {GAUGES.map(([column, name]) => {
          const value = series.last(column) ?? 0;
          const limit = series.limit(column);
          const share = limit === undefined ? 0 : Math.min(1, value / limit);
          return (
            <tr key={column}>
              <td>{name}</td>
              <td class="gauge-bar">
                <i class={share > 0.8 ? "full" : ""}>
                  <b style={{ width: `${share * 100}%` }} />
                </i>
              </td>
              <td class="right num">
                {grouped(value)}
                {limit !== undefined && <span class="dim"> of {grouped(limit)}</span>}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
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
        padding: [8, 30, 0, 0],
        cursor: { sync: { key: "system" }, points: { show: false }, y: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1) * 1.08] } },
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
