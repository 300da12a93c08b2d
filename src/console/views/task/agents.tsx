/** The agents of a task: what each has in memory, in the order in which its model gets it. */
import { useState } from "preact/hooks";
import { historyOf } from "../../../engine/pure.js";
import type { OpenTask } from "../../data/journal.js";
import type { Costs } from "../../model/cost.js";
import { doing } from "../../model/diff.js";
import { recipientsText, senderText, subjectText } from "../../model/mail-words.js";
import { grouped, money, plural, short } from "../../model/words.js";
import { agentClass } from "../../paint/colors.js";
import { Json } from "../../ui/json.js";
import { Markdown, Pre, Text } from "../../ui/text.js";

export function AgentsOfTask({
  task,
  costs,
  asOf,
  onGo,
}: {
  readonly task: OpenTask;
  readonly costs: Costs;
  readonly asOf: number | undefined;
  readonly onGo: (n: number) => void;
}) {
  void task.version.value;
  const lanes = task.lanes.lanes.filter(({ kind }) => kind === "agent");
  const [picked, setPicked] = useState<string | undefined>(undefined);
  const name = picked ?? lanes[0]?.id;
  const state = task.travel.at(asOf ?? task.last);
  if (state === undefined || name === undefined)
    return <p class="dim side-part">The journal is still being read.</p>;
  const history = historyOf(state, name);
  const sum = costs.agents.get(name);
  return (
    <div class="agents-view">
      <div class="agents-list scroll" role="group" aria-label="Agents">
        {lanes.map((lane) => (
          <button
            type="button"
            key={lane.id}
            aria-pressed={lane.id === name}
            onClick={() => setPicked(lane.id)}
          >
            <span class="row-of">
              <i class={agentClass(lane.color)} />
              <b class="cut">
                <Text>{lane.name}</Text>
              </b>
            </span>
            <small>{doing(state.agents.get(lane.id))}</small>
            <small>
              {plural(lane.turns, "turn")}
              {lane.tokens > 0 ? ` · ${short(lane.tokens)} tokens` : ""}
            </small>
          </button>
        ))}
      </div>
      <div class="agent-memory scroll" tabIndex={0} role="region" aria-label={`Memory of ${name}`}>
        <p class="dim">
          {plural(history.length, "item")} in memory{asOf === undefined ? "" : ` as of #${asOf}`}
          {sum !== undefined && sum.input + sum.output > 0
            ? ` · ${grouped(sum.input)} tokens in (${grouped(sum.cached)} cached), ${grouped(sum.output)} out`
            : ""}
          {sum !== undefined && sum.cost > 0 ? ` · ${money(sum.cost)}` : ""}
        </p>
        {history.map((item, index) => (
          <article class={`bubble ${item.kind === "answer" ? "mine" : ""}`} key={`${item.number} ${index}`}>
            <header>
              <b>
                {item.kind === "message" ? (
                  <Text>{senderText(item.message)}</Text>
                ) : item.kind === "answer" ? (
                  <Text>{name}</Text>
                ) : item.kind === "result" ? (
                  <Text>{item.name}</Text>
                ) : (
                  "Summary"
                )}
              </b>
              <span>
                {item.kind === "message" ? (
                  <Text>{`to ${recipientsText(item.message)}`}</Text>
                ) : item.kind === "result" ? (
                  item.ok ? (
                    "result"
                  ) : (
                    "failed"
                  )
                ) : item.kind === "answer" ? (
                  "answered"
                ) : (
                  "of what was before"
                )}
              </span>
              <button type="button" class="link" onClick={() => onGo(item.number)}>
                #{item.number}
              </button>
            </header>
            {item.kind === "message" ? (
              <>
                <b>
                  <Text>{subjectText(item.message.message.subject)}</Text>
                </b>
                <Markdown text={item.message.message.body} />
              </>
            ) : item.kind === "answer" ? (
              <>
                {item.reasoning !== undefined && <Markdown text={item.reasoning} />}
                {item.text !== undefined && <Markdown text={item.text} />}
                {item.calls.map((call) => (
                  <div class="said-call" key={call.id}>
                    <span class="mono">
                      <Text>{call.name}</Text>
                    </span>
                    {Object.keys(call.args).length > 0 && <Json value={call.args} open={1} />}
                  </div>
                ))}
              </>
            ) : item.kind === "result" ? (
              <Pre text={item.content} />
            ) : (
              <Markdown text={item.text} />
            )}
          </article>
        ))}
      </div>
    </div>
  );
}
