/** Outcomes over time, one bar for some seconds. */
import { useEffect, useRef, useState } from "preact/hooks";
import { taskRows, tasksVersion } from "../../data/tasks.js";
import { clock } from "../../model/words.js";
import { setQuery } from "../../nav/route.js";
import { theme } from "../../nav/theme.js";
import { colorOf } from "../../paint/colors.js";
import { useNow } from "../../ui/kit.js";

const STEPS = [1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000];
const BAR = 6;

interface Bars {
  readonly from: number;
  readonly step: number;
  readonly bars: { good: number; bad: number; wait: number }[];
}

function barsOf(now: number, count: number): Bars {
  const rows = taskRows();
  let oldest = now - 60_000;
  for (const { updatedAt, status } of rows) if (status !== "running") oldest = Math.min(oldest, updatedAt);
  const step = STEPS.find((each) => each * count >= now - oldest) ?? 86_400_000;
  const from = Math.floor(now / step) * step - (count - 1) * step;
  const bars = Array.from({ length: count }, () => ({ good: 0, bad: 0, wait: 0 }));
  for (const { updatedAt, status } of rows) {
    const bar = bars[Math.floor((updatedAt - from) / step)];
    if (bar === undefined) continue;
    if (status === "completed") bar.good++;
    else if (status === "failed") bar.bad++;
    else if (status === "paused") bar.wait++;
  }
  return { from, step, bars };
}

/** @param until the end of the time that is shown; empty for now */
export function Outcomes({ until: end }: { readonly until: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [drag, setDrag] = useState<{ readonly from: number; readonly to: number } | undefined>(undefined);
  void tasksVersion.value;
  const ticking = useNow(2_000);
  const now = end === "" ? ticking : Date.parse(end) || ticking;
  const rows = taskRows();
  const sums = { completed: 0, failed: 0, paused: 0 };
  let recent = 0;
  for (const { status, updatedAt } of rows) {
    if (status === "completed" || status === "failed" || status === "paused") sums[status]++;
    if ((status === "completed" || status === "failed") && now - updatedAt < 10_000) recent++;
  }
  const shade = theme.value;
  const width = canvas.current?.parentElement?.clientWidth ?? 600;
  const count = Math.max(20, Math.floor(width / BAR));
  const data = barsOf(now, count);
  useEffect(() => {
    const element = canvas.current;
    const box = element?.parentElement;
    if (element === null || box === null || box === undefined) return;
    const wide = box.clientWidth;
    const high = element.clientHeight;
    const scale = devicePixelRatio;
    element.width = wide * scale;
    element.height = high * scale;
    const paint = element.getContext("2d");
    if (paint === null) return;
    paint.scale(scale, scale);
    const most = Math.max(1, ...data.bars.map(({ good, bad, wait }) => good + bad + wait));
    for (const [index, { good, bad, wait }] of data.bars.entries()) {
      const x = wide - (data.bars.length - index) * BAR;
      let y = high;
      for (const [value, color] of [
        [good, "--good"],
        [bad, "--bad"],
        [wait, "--wait"],
      ] as const) {
        if (value === 0) continue;
        const tall = Math.max(2, (value / most) * (high - 1));
        paint.fillStyle = colorOf(color);
        paint.fillRect(x, y - tall, BAR - 1.5, tall);
        y -= tall;
      }
      if (good + bad + wait === 0) {
        paint.fillStyle = colorOf("--line");
        paint.fillRect(x, high - 1, BAR - 1.5, 1);
      }
    }
  }, [data.from, data.step, count, shade, tasksVersion.value]);
  const until = data.from + data.step * data.bars.length;
  const days = until - data.from > 86_400_000;
  return (
    <div class="outcomes">
      <div class="outcomes-head">
        <span>
          <b class="num">{(recent / 10).toFixed(1)}</b>
          <span class="wide-only"> tasks</span>/s<span class="wide-only"> now</span>
        </span>
        <Legend tone="good" name="completed" count={sums.completed} />
        <Legend tone="bad" name="failed" count={sums.failed} />
        <Legend tone="wait" name="needs you" count={sums.paused} />
        <span class="grow" />
        <span class="dim num wide-only">
          {days
            ? `last ${Math.round((until - data.from) / 86_400_000)} days`
            : `${clock(data.from, false)} – ${clock(until, false)}`}
        </span>
      </div>
      <div
        class="outcomes-box"
        title="Drag to show the tasks of a time"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: event.offsetX, to: event.offsetX });
        }}
        onPointerMove={({ offsetX }) => drag !== undefined && setDrag({ ...drag, to: offsetX })}
        onPointerCancel={() => setDrag(undefined)}
        onPointerUp={({ currentTarget: { clientWidth } }) => {
          setDrag(undefined);
          if (drag === undefined || Math.abs(drag.to - drag.from) < BAR) return;
          const at = (x: number) => new Date(until - ((clientWidth - x) / BAR) * data.step).toISOString();
          setQuery({
            since: at(Math.max(0, Math.min(drag.from, drag.to))),
            until: at(Math.min(clientWidth, Math.max(drag.from, drag.to))),
          });
        }}
      >
        {drag !== undefined && (
          <i
            class="outcomes-drag"
            style={{
              left: `${Math.min(drag.from, drag.to)}px`,
              width: `${Math.abs(drag.to - drag.from)}px`,
            }}
          />
        )}
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Outcomes of the listed tasks: ${sums.completed} completed, ${sums.failed} failed, ${sums.paused} ${sums.paused === 1 ? "needs" : "need"} you`}
        />
      </div>
    </div>
  );
}

function Legend({
  tone,
  name,
  count,
}: {
  readonly tone: string;
  readonly name: string;
  readonly count: number;
}) {
  return (
    <span class="legend">
      <span class={`swatch ${tone}`} /> {name} <b class="num wide-only">{count}</b>
    </span>
  );
}
