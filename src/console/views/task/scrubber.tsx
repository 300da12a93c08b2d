/** One tick for each entry, its height by the time before it, its color by kind. Drag, or use the keys. */
import { useEffect, useRef } from "preact/hooks";
import type { OpenTask } from "../../data/journal.js";
import type { JournalEntry } from "../../model/journal-entry.js";
import { grouped } from "../../model/words.js";
import { theme } from "../../nav/theme.js";
import { colorOf } from "../../paint/colors.js";
import { Kbd } from "../../ui/kit.js";

function toneOf(entry: JournalEntry): string {
  switch (entry.t) {
    case "turn_failed":
    case "failed":
      return "--bad";
    case "action_finished":
      return entry.ok ? "--action-line" : "--bad";
    case "action_started":
      return "--action-line";
    case "paused":
    case "recovered":
    case "step_limit":
      return "--wait";
    case "completed":
      return "--good";
    case "sent":
      return "--accent";
    default:
      return "--bar-line";
  }
}

interface ScrubberProps {
  readonly task: OpenTask;
  readonly asOf: number | undefined;
  readonly live: boolean;
  readonly onGo: (n: number) => void;
  readonly onLive: () => void;
}

export function Scrubber({ task, asOf, live, onGo, onLive }: ScrubberProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const first = task.entries[0]?.n ?? 1;
  const last = task.last;
  const at = asOf ?? last;
  const shade = theme.value;
  const version = task.version.value;
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const { clientWidth: width, clientHeight: height } = element;
    const scale = devicePixelRatio;
    element.width = width * scale;
    element.height = height * scale;
    const paint = element.getContext("2d");
    if (paint === null) return;
    paint.scale(scale, scale);
    const count = Math.max(1, last - first);
    const room = width - 14;
    const x = (n: number) => 7 + ((n - first) / count) * room;
    const base = height - 8;
    paint.lineWidth = 2;
    paint.strokeStyle = colorOf("--line-strong");
    line(paint, 7, base, width - 7, base);
    paint.strokeStyle = colorOf("--accent");
    line(paint, 7, base, x(at), base);
    // More entries than pixels: the most telling one of each pixel.
    const step = Math.max(1, Math.floor(count / room));
    const thick = Math.max(1.5, Math.min(3, (room / count) * 0.3));
    for (let index = 0; index < task.entries.length; index += step) {
      const entry = task.entries[index];
      const before = task.entries[index - 1];
      if (entry === undefined) continue;
      const gap = before === undefined ? 0 : Math.max(0, entry.at - before.at);
      const tall = 3 + Math.min(15, gap < 5 ? 0 : Math.log10(gap / 5) * 5);
      paint.globalAlpha = entry.n <= at ? 1 : 0.4;
      paint.fillStyle = colorOf(toneOf(entry));
      paint.fillRect(x(entry.n) - thick / 2, base - 3 - tall, thick, tall);
    }
    paint.globalAlpha = 1;
    paint.beginPath();
    paint.arc(x(at), base, 5, 0, Math.PI * 2);
    paint.fillStyle = colorOf("--ground");
    paint.fill();
    paint.lineWidth = 2.5;
    paint.strokeStyle = colorOf("--accent");
    paint.stroke();
  }, [version, at, shade, last, first]);
  const pick = (event: PointerEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    if (box === undefined) return;
    const share = (event.clientX - box.left - 7) / Math.max(1, box.width - 14);
    onGo(Math.round(first + Math.max(0, Math.min(1, share)) * (last - first)));
  };
  return (
    <div class="scrubber">
      <button type="button" class="live-button" aria-pressed={live} onClick={onLive}>
        Live
      </button>
      <div
        class="scrub-track"
        role="slider"
        tabIndex={0}
        aria-label="As of entry"
        aria-valuemin={first}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={`entry ${at} of ${last}`}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          pick(event);
        }}
        onPointerMove={(event) => {
          if (event.buttons === 1) pick(event);
        }}
        onKeyDown={(event) => {
          const by =
            event.key === "ArrowLeft"
              ? -1
              : event.key === "ArrowRight"
                ? 1
                : event.key === "PageUp"
                  ? -10
                  : event.key === "PageDown"
                    ? 10
                    : 0;
          if (event.key === "Home") onGo(first);
          else if (event.key === "End") onGo(last);
          else if (by !== 0) onGo(Math.max(first, Math.min(last, at + by)));
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        <canvas ref={canvas} aria-hidden="true" />
      </div>
      <span class="scrub-at">
        #{grouped(at)} of {grouped(last)} <Kbd>[</Kbd> <Kbd>]</Kbd>
      </span>
    </div>
  );
}

function line(paint: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  paint.beginPath();
  paint.moveTo(x1, y1);
  paint.lineTo(x2, y2);
  paint.stroke();
}
