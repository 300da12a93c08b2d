/** One entry with everything that belongs to it, and the task's state as of it. */
import { useState } from "preact/hooks";
import type { OpenTask } from "../../data/journal.js";
import { changesBetween, doing } from "../../model/diff.js";
import { titleText } from "../../model/entry-words.js";
import type { JournalEntry } from "../../model/journal-entry.js";
import type { Links } from "../../model/links.js";
import { recipientsText, senderText, subjectText } from "../../model/mail-words.js";
import { clock, dateAndTime, duration, grouped, money, plural } from "../../model/words.js";
import { Icon } from "../../ui/icon.js";
import { Json } from "../../ui/json.js";
import { copyText, Tabs, toast } from "../../ui/kit.js";
import { Markdown, Pre, Text } from "../../ui/text.js";

interface InspectorProps {
  readonly task: OpenTask;
  readonly links: Links;
  readonly entry: JournalEntry;
  readonly onGo: (n: number) => void;
  readonly onStep: (by: number) => void;
  readonly onClose: () => void;
  readonly curl: string;
}

function entryAt(task: OpenTask, n: number): JournalEntry | undefined {
  const first = task.entries[0]?.n ?? 1;
  return task.entries[n - first];
}

export function Inspector({ task, links, entry, onGo, onStep, onClose, curl }: InspectorProps) {
  const [view, setView] = useState<"read" | "json">("read");
  return (
    <aside class="inspector" aria-label="Inspector">
      <div class="scroll" tabIndex={0} role="region" aria-label={`Entry ${entry.n}`}>
        <section class="side-part">
          <div class="inspector-head">
            <span class="tag mono">#{entry.n}</span>
            <h2 class="cut">
              <Text>{titleText(entry)}</Text>
            </h2>
            <button type="button" class="button small" aria-label="Entry before" onClick={() => onStep(-1)}>
              <Icon name="up" size={12} />
            </button>
            <button type="button" class="button small" aria-label="Entry after" onClick={() => onStep(1)}>
              <Icon name="down" size={12} />
            </button>
            <button type="button" class="button small" aria-label="Close the inspector" onClick={onClose}>
              <Icon name="close" size={12} />
            </button>
          </div>
          <Facts task={task} links={links} entry={entry} onGo={onGo} />
          <div class="row-of">
            <Tabs
              label="How to show it"
              value={view}
              tabs={[
                { id: "read", name: "Read" },
                { id: "json", name: "JSON" },
              ]}
              onPick={setView}
            />
            <span class="grow" />
            <button
              type="button"
              class="button small"
              onClick={() =>
                void copyText(JSON.stringify(entry, null, 2)).then((ok) => ok && toast("Entry copied."))
              }
            >
              Copy
            </button>
            <button
              type="button"
              class="button small"
              onClick={() => void copyText(curl).then((ok) => ok && toast("Command copied."))}
            >
              Copy as curl
            </button>
          </div>
        </section>
        {view === "json" ? (
          <section class="side-part">
            <Json value={entry} open={3} />
          </section>
        ) : (
          <Reading task={task} links={links} entry={entry} onGo={onGo} />
        )}
      </div>
      <StateAsOf task={task} n={entry.n} />
    </aside>
  );
}

function Go({
  n,
  onGo,
  children,
}: {
  readonly n: number;
  readonly onGo: (n: number) => void;
  readonly children?: string;
}) {
  return (
    <button type="button" class="link" onClick={() => onGo(n)}>
      {children ?? `#${n}`}
    </button>
  );
}

function Facts({
  task,
  links,
  entry,
  onGo,
}: {
  readonly task: OpenTask;
  readonly links: Links;
  readonly entry: JournalEntry;
  readonly onGo: (n: number) => void;
}) {
  const rows: [string, preact.ComponentChildren][] = [];
  rows.push([
    entry.t === "turn" ? "Answered" : entry.t === "sent" ? "Sent" : "At",
    <span title={dateAndTime(entry.at)}>{clock(entry.at)}</span>,
  ]);
  if (entry.t === "turn" || entry.t === "turn_failed") {
    const row = task.lanes.rows[task.lanes.rowAt(entry.n)];
    const span = row?.drawing.kind === "turn" ? task.lanes.spans[row.drawing.span] : undefined;
    const mail = entry.took.map((n) => entryAt(task, n)?.at).filter((at) => at !== undefined);
    if (span !== undefined) {
      const waited = Math.max(0, span.startedAt - Math.max(...mail, 0));
      rows.push([
        "Thought",
        `${duration(entry.at - span.startedAt)}, ${mail.length === 0 || waited < 5 ? "at once" : `after ${duration(waited)} of waiting`}`,
      ]);
    }
  }
  if (entry.t === "turn" && entry.usage !== undefined) {
    const { model, inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, cost } = entry.usage;
    if (model !== undefined)
      rows.push([
        "Model",
        <span class="mono">
          <Text>{model}</Text>
        </span>,
      ]);
    rows.push([
      "Tokens",
      `${grouped(inputTokens)} in${cachedInputTokens > 0 ? ` (${grouped(cachedInputTokens)} cached)` : ""}, ${grouped(outputTokens)} out`,
    ]);
    if (cost !== undefined) rows.push(["Cost", money(cost)]);
  }
  if ((entry.t === "turn" || entry.t === "turn_failed") && entry.took.length > 0) {
    rows.push([
      "Took mail",
      entry.took.map((n) => (
        <span key={n}>
          <Go n={n} onGo={onGo} />{" "}
        </span>
      )),
    ]);
  }
  if (entry.t === "sent") {
    rows.push(
      ["From", <Text>{senderText(entry.message)}</Text>],
      ["To", <Text>{recipientsText(entry.message)}</Text>],
    );
    rows.push(["Type", entry.message.msg_type]);
    const other = links.otherEnd(entry);
    const taker = links.takers(entry.n);
    if (other !== undefined && !taker.includes(other))
      rows.push([entry.message.msg_type === "request" ? "Answer" : "Asked in", <Go n={other} onGo={onGo} />]);
    if (taker.length > 0)
      rows.push([
        "Taken in",
        taker.map((n) => (
          <span key={n}>
            <Go n={n} onGo={onGo} />{" "}
          </span>
        )),
      ]);
    else if (entry.to.length > 0) rows.push(["Taken in", "not yet"]);
  }
  if (entry.t === "action_started" || entry.t === "action_finished" || entry.t === "result") {
    rows.push(["Agent", <Text>{entry.agent}</Text>]);
    const call = links.callOf(entry.agent, entry.call);
    if (call !== undefined) rows.push(["Called in", <Go n={call.turn} onGo={onGo} />]);
    const [start, end] = [call?.start, call?.end];
    if (start !== undefined && start !== entry.n) rows.push(["Started", <Go n={start} onGo={onGo} />]);
    if (end !== undefined && end !== entry.n) rows.push(["Ended", <Go n={end} onGo={onGo} />]);
    if (start !== undefined && end !== undefined) {
      rows.push(["Took", duration((entryAt(task, end)?.at ?? 0) - (entryAt(task, start)?.at ?? 0))]);
    }
  }
  if (entry.t === "turn_failed" || entry.t === "failed")
    rows.push(["Code", <span class="mono">{entry.code}</span>]);
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

function Reading({
  task,
  links,
  entry,
  onGo,
}: {
  readonly task: OpenTask;
  readonly links: Links;
  readonly entry: JournalEntry;
  readonly onGo: (n: number) => void;
}) {
  switch (entry.t) {
    case "sent":
    case "completed":
    case "cancelled":
      return (
        <Part title={subjectText(entry.message.message.subject)}>
          <div class="card">
            <Body text={entry.message.message.body} />
          </div>
        </Part>
      );
    case "turn":
      return (
        <>
          {entry.reasoning !== undefined && (
            <Part title="Reasoning">
              <div class="card">
                <Markdown text={entry.reasoning} />
              </div>
            </Part>
          )}
          {entry.text !== undefined && entry.text !== "" && (
            <Part title="Text">
              <div class="card">
                <Markdown text={entry.text} />
              </div>
            </Part>
          )}
          {entry.calls.length > 0 && (
            <Part title="Calls" note={`${entry.calls.length} in this turn`}>
              {entry.calls.map((call) => (
                <CallCard
                  key={call.id}
                  task={task}
                  links={links}
                  agent={entry.agent}
                  call={call}
                  onGo={onGo}
                />
              ))}
            </Part>
          )}
        </>
      );
    case "turn_failed":
      return (
        <Part title="What went wrong">
          <Pre text={entry.message} />
        </Part>
      );
    case "result":
    case "action_finished":
      return (
        <Part title={entry.t === "result" && entry.breakpoint === true ? "A person answered" : "Result"}>
          <div class="card">
            <Body text={entry.content} />
          </div>
        </Part>
      );
    case "action_started": {
      const turn = links.callOf(entry.agent, entry.call)?.turn;
      const made = turn === undefined ? undefined : entryAt(task, turn);
      const call = made?.t === "turn" ? made.calls.find(({ id }) => id === entry.call) : undefined;
      return call === undefined ? null : (
        <Part title="Arguments">
          <Json value={call.args} />
        </Part>
      );
    }
    case "paused":
      return (
        <Part title={entry.reason === undefined ? "Waits for a person" : "On hold"}>
          {entry.calls.map((call) => (
            <div class="card" key={call.id}>
              <b class="mono">
                <Text>{call.name}</Text>
              </b>
              <Json value={call.args} />
            </div>
          ))}
          {entry.reason !== undefined && <Pre text={entry.message.message.body} />}
        </Part>
      );
    case "failed":
      return (
        <Part title="Reason">
          <Pre text={entry.reason} />
        </Part>
      );
    case "compacted":
      return (
        <Part title="Summary">
          <div class="card">
            <Markdown text={entry.summary} />
          </div>
        </Part>
      );
    default:
      return (
        <section class="side-part">
          <Json value={entry} />
        </section>
      );
  }
}

/** JSON reads better as a tree, everything else as text. */
function Body({ text }: { readonly text: string }) {
  const trimmed = text.trimStart();
  if ((trimmed.startsWith("{") || trimmed.startsWith("[")) && text.length < 500_000) {
    try {
      const value: unknown = JSON.parse(text);
      return <Json value={value} />;
    } catch {
      // It only looks like JSON.
    }
  }
  return <Markdown text={text} />;
}

function CallCard({
  task,
  links,
  agent,
  call,
  onGo,
}: {
  readonly task: OpenTask;
  readonly links: Links;
  readonly agent: string;
  readonly call: {
    readonly id: string;
    readonly name: string;
    readonly args: Readonly<Record<string, unknown>>;
  };
  readonly onGo: (n: number) => void;
}) {
  const known = links.callOf(agent, call.id);
  const end = known?.end === undefined ? undefined : entryAt(task, known.end);
  const { target, subject, body, finish_message: finish } = call.args;
  const mail = typeof subject === "string" && typeof body === "string";
  return (
    <div class="card">
      <header>
        <b class="mono">
          <Text>{call.name}</Text>
        </b>
        {typeof target === "string" && (
          <span class="dim">
            → <Text>{target}</Text>
          </span>
        )}
        <span class="push mono dim">
          {known?.sent !== undefined ? <Go n={known.sent} onGo={onGo} /> : <Text>{call.id.slice(0, 8)}</Text>}
        </span>
      </header>
      {mail ? (
        <>
          <b>
            <Text>{subject}</Text>
          </b>
          <Markdown text={body} />
        </>
      ) : typeof finish === "string" ? (
        <Markdown text={finish} />
      ) : Object.keys(call.args).length > 0 ? (
        <Json value={call.args} />
      ) : null}
      {(end?.t === "result" || end?.t === "action_finished") && (
        <p class={end.ok ? "good" : "bad"}>
          {end.ok ? "✓" : "✗"} <Go n={end.n} onGo={onGo} /> <Text>{end.content.slice(0, 300)}</Text>
        </p>
      )}
    </div>
  );
}

function Part({
  title,
  note,
  children,
}: {
  readonly title: string;
  readonly note?: string;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <section class="side-part">
      <header class="side-head">
        <h3>
          <Text>{title}</Text>
        </h3>
        {note !== undefined && <span>{note}</span>}
      </header>
      {children}
    </section>
  );
}

function StateAsOf({ task, n }: { readonly task: OpenTask; readonly n: number }) {
  const [changes, setChanges] = useState(false);
  const state = task.travel.at(n);
  if (state === undefined) return null;
  const before = n > 1 && changes ? task.travel.at(n - 1) : undefined;
  return (
    <section class="state-as-of scroll" aria-label={`State as of entry ${n}`} tabIndex={0}>
      <header class="side-head">
        <h3>State as of #{n}</h3>
        <button type="button" class="link" aria-pressed={changes} onClick={() => setChanges(!changes)}>
          {changes ? "whole state" : "what changed"}
        </button>
      </header>
      {before !== undefined ? (
        changesBetween(before, state).map(({ what, before: one, after: other }) => (
          <div class="change" key={what}>
            <span class="dim cut">
              <Text>{what}</Text>
            </span>
            <span>
              <Text>{`${one} → ${other}`}</Text>
            </span>
          </div>
        ))
      ) : (
        <table>
          <tbody>
            {[...state.agents].map(([name, agent]) => (
              <tr key={name}>
                <td>
                  <Text>{name}</Text>
                </td>
                <td class={doing(agent) === "idle" ? "dim" : ""}>
                  {doing(agent)}
                  {agent.mailbox.length > 0 && (
                    <span class="dim"> · {agent.mailbox.length} in its mailbox</span>
                  )}
                </td>
                <td class="num">{agent.history.length} in memory</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="dim num">
        {plural(state.outstanding.length, "open request")} · step {state.steps}
        {state.maxSteps === undefined ? "" : ` of ${state.maxSteps}`}
      </p>
    </section>
  );
}
