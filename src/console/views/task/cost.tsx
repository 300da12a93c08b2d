/** Where tokens and money went. */
import type { Costs, Sum } from "../../model/cost.js";
import { grouped, money, plural } from "../../model/words.js";
import { Panel } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";

export function CostOfTask({ costs, onGo }: { readonly costs: Costs; readonly onGo: (n: number) => void }) {
  const { total } = costs;
  const dearest = [...costs.turns]
    .sort((a, b) => b.cost - a.cost || b.input + b.output - a.input - a.output)
    .slice(0, 5);
  const cached = total.input === 0 ? 0 : Math.round((total.cached / total.input) * 100);
  return (
    <div class="cost-view scroll" tabIndex={0} role="region" aria-label="Cost">
      <p>
        <b>{money(total.cost)}</b> for {plural(total.input, "token")} in ({cached}% of them cached) and{" "}
        {grouped(total.output)} out, in {plural(total.turns, "turn")}.
        {total.input + total.output === 0 && <span class="dim"> No agent of this task reported tokens.</span>}
      </p>
      <Panel title="By agent">
        <Sums sums={costs.agents} total={total} />
      </Panel>
      {costs.models.size > 0 && (
        <Panel title="By model">
          <Sums sums={costs.models} total={total} />
        </Panel>
      )}
      <Panel title="Most expensive turns">
        <table class="grid">
          <thead>
            <tr>
              <th>Entry</th>
              <th>Agent</th>
              <th class="right">In</th>
              <th class="right">Out</th>
              <th class="right">Cost</th>
            </tr>
          </thead>
          <tbody>
            {dearest.map((turn) => (
              <tr key={turn.n}>
                <td>
                  <button type="button" class="link" onClick={() => onGo(turn.n)}>
                    #{turn.n}
                  </button>
                </td>
                <td>
                  <Text>{turn.agent}</Text>
                </td>
                <td class="right">{grouped(turn.input)}</td>
                <td class="right">{grouped(turn.output)}</td>
                <td class="right">{money(turn.cost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Panel>
    </div>
  );
}

function Sums({ sums, total }: { readonly sums: ReadonlyMap<string, Sum>; readonly total: Sum }) {
  const weigh = (sum: Sum) =>
    total.cost > 0
      ? sum.cost / total.cost
      : total.input + total.output > 0
        ? (sum.input + sum.output) / (total.input + total.output)
        : sum.turns / Math.max(1, total.turns);
  return (
    <table class="grid sums">
      <thead>
        <tr>
          <th>Name</th>
          <th>Share</th>
          <th class="right">Turns</th>
          <th class="right">Failed</th>
          <th class="right">Tokens in</th>
          <th class="right">Cached</th>
          <th class="right">Tokens out</th>
          <th class="right">Cost</th>
        </tr>
      </thead>
      <tbody>
        {[...sums].map(([name, sum]) => (
          <tr key={name}>
            <td>
              <Text>{name}</Text>
            </td>
            <td class="share">
              <div class="bar-cell">
                <i style={{ width: `${Math.round(weigh(sum) * 100)}%` }} />
              </div>
            </td>
            <td class="right">{grouped(sum.turns)}</td>
            <td class={`right ${sum.failed > 0 ? "bad" : "dim"}`}>
              {sum.failed === 0 ? "–" : grouped(sum.failed)}
            </td>
            <td class="right">{grouped(sum.input)}</td>
            <td class="right">{grouped(sum.cached)}</td>
            <td class="right">{grouped(sum.output)}</td>
            <td class="right">{money(sum.cost)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
