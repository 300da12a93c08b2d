/** The small picture of a task in a list: a line for each agent, its turns as blocks. Drawn on a canvas to save nodes. */
import { useEffect, useRef } from "preact/hooks";
import { LANE_FAILED, LANE_OPEN, LANE_PAUSED, type TaskDigest } from "../data/shapes.js";
import { theme } from "../nav/theme.js";
import { agentColor, colorOf } from "./colors.js";

const MOST_LANES = 5;

export function Spark({
  digest,
  width,
  height,
  running,
}: {
  readonly digest: TaskDigest | undefined;
  readonly width: number;
  readonly height: number;
  readonly running: boolean;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shade = theme.value;
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const scale = devicePixelRatio;
    element.width = width * scale;
    element.height = height * scale;
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
    const paint = element.getContext("2d");
    if (paint === null || digest === undefined) return;
    paint.scale(scale, scale);
    draw(paint, digest, width, height, running);
  }, [digest, width, height, shade, running]);
  return <canvas class="spark" ref={canvas} aria-hidden="true" />;
}

function draw(
  paint: CanvasRenderingContext2D,
  digest: TaskDigest,
  width: number,
  height: number,
  running: boolean,
): void {
  const lanes = Math.min(MOST_LANES, Math.max(1, digest.agents.length));
  const paused =
    digest.lanes.some(([, , , flags]) => (flags & LANE_PAUSED) !== 0) ||
    digest.open.length > 0 ||
    digest.held !== null;
  const room = width - (paused ? 6 : 0);
  let end = 1;
  for (const [, from, to] of digest.lanes) end = Math.max(end, from, to);
  const step = Math.min(5, height / lanes);
  const top = (height - step * lanes) / 2;
  const thick = Math.max(2, Math.min(3, step - 1.5));
  paint.fillStyle = colorOf("--line");
  for (let lane = 0; lane < lanes; lane++)
    paint.fillRect(0, Math.round(top + step * (lane + 0.5)), room, 0.75);
  for (const [agent, from, to, flags] of digest.lanes) {
    const lane = Math.min(agent, lanes - 1);
    const x = (from / end) * room;
    const open = (flags & LANE_OPEN) !== 0 && running;
    const wide = Math.max(1.5, ((open ? end : to) / end) * room - x);
    paint.fillStyle = (flags & LANE_FAILED) !== 0 ? colorOf("--bad") : agentColor(agent);
    paint.beginPath();
    paint.roundRect(x, top + step * (lane + 0.5) - thick / 2, wide, thick, 1);
    paint.fill();
  }
  if (paused) {
    paint.fillStyle = colorOf("--wait");
    paint.beginPath();
    paint.roundRect(width - 3, 1, 3, height - 2, 1.5);
    paint.fill();
  }
}
