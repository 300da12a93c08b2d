/** Health checks of another swarm as bars: the height is the latency, a failed one is red and full. */
import type { Peer } from "../../data/shapes.js";
import { clock, duration, grouped } from "../../model/words.js";

type Check = NonNullable<Peer["checks"]>[number];

export function checksText(checks: readonly Check[]): string {
  const answered = checks.flatMap(([, latency]) => (latency === null ? [] : [latency * 1_000]));
  const words = `${answered.length} of ${grouped(checks.length)} checks answered`;
  if (answered.length === 0) return words;
  const [least, most] = [Math.min(...answered), Math.max(...answered)].map((ms) => duration(ms));
  return `${words}, in ${least === most ? least : `${least} to ${most}`}`;
}

/** @param count how many of the last ones are shown */
export function Checks({ checks, count }: { readonly checks: readonly Check[]; readonly count: number }) {
  const shown = checks.slice(-count);
  const most = Math.max(0.001, ...shown.map(([, latency]) => latency ?? 0));
  return (
    <span class="checks" role="img" aria-label={checksText(checks)}>
      {Array.from({ length: count - shown.length }, (_, index) => (
        <i key={index} class="none" />
      ))}
      {shown.map(([at, latency]) => (
        <i
          key={at}
          class={latency === null ? "failed" : ""}
          title={`${clock(at, false)}: ${latency === null ? "no answer" : duration(latency * 1_000)}`}
          style={{ height: latency === null ? "100%" : `${Math.max(12, (latency / most) * 100)}%` }}
        />
      ))}
    </span>
  );
}
