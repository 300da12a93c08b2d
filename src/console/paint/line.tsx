/** A small line with a filled area, for tiles. */
import { useEffect, useRef } from "preact/hooks";
import { theme } from "../nav/theme.js";
import { colorOf } from "./colors.js";

export function SparkLine({
  values,
  color,
  label,
}: {
  readonly values: readonly (number | null)[];
  readonly color: string;
  readonly label: string;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const shade = theme.value;
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const { clientWidth: width, clientHeight: height } = element;
    const scale = devicePixelRatio;
    element.width = width * scale;
    element.height = height * scale;
    const paint = element.getContext("2d");
    if (paint === null || values.length < 2) return;
    paint.scale(scale, scale);
    const shown = shrink(values, Math.floor(width / 2));
    const most = Math.max(1e-9, ...shown);
    const x = (index: number) => (index / Math.max(1, shown.length - 1)) * width;
    const y = (value: number) => height - 1.5 - (value / most) * (height - 4);
    paint.beginPath();
    paint.moveTo(0, height);
    for (const [index, value] of shown.entries()) paint.lineTo(x(index), y(value));
    paint.lineTo(width, height);
    paint.globalAlpha = 0.12;
    paint.fillStyle = colorOf(color);
    paint.fill();
    paint.globalAlpha = 1;
    paint.beginPath();
    for (const [index, value] of shown.entries()) paint.lineTo(x(index), y(value));
    paint.strokeStyle = colorOf(color);
    paint.lineWidth = 1.3;
    paint.lineJoin = "round";
    paint.stroke();
  }, [values, shade, color]);
  return <canvas class="tile-line" ref={canvas} role="img" aria-label={label} />;
}

/** As many points as there is room for: the mean of each group. */
export function shrink(values: readonly (number | null)[], most: number): number[] {
  const size = Math.max(1, Math.ceil(values.length / Math.max(1, most)));
  const shown: number[] = [];
  for (let at = 0; at < values.length; at += size) {
    let sum = 0;
    let count = 0;
    for (const value of values.slice(at, at + size)) {
      if (value === null) continue;
      sum += value;
      count++;
    }
    shown.push(count === 0 ? 0 : sum / count);
  }
  return shown;
}
