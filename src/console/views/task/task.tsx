/** One task: lanes, journal, agents, conversation, cost, raw; as of any entry. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { caller, isAdmin, urlOf } from "../../data/api.js";
import { digestVersion, wantDigest } from "../../data/digest.js";
import { OpenTask } from "../../data/journal.js";
import { costsOf } from "../../model/cost.js";
import { Links } from "../../model/links.js";
import { duration, grouped, money, principalOf } from "../../model/words.js";
import { dialog, screenCommands, type TaskRef } from "../../nav/dialogs.js";
import { useKeys } from "../../nav/keys.js";
import { go, href, route, setQuery } from "../../nav/route.js";
import { useTop } from "../../nav/title.js";
import { type LanesFilter, type LanesView, MOST_LANES } from "../../paint/lanes-view.js";
import { Icon } from "../../ui/icon.js";
import { copyText, Kbd, MenuButton, StatusPill, Tabs, toast, useNow } from "../../ui/kit.js";
import { Markdown, Text } from "../../ui/text.js";
import { Answer } from "../parts/answer.js";
import { ErrorState, Waiting } from "../parts/states.js";
import { AgentsOfTask } from "./agents.js";
import { CostOfTask } from "./cost.js";
import { exportJournal, saveMermaid, saveSvg } from "./export.js";
import { Inspector } from "./inspector.js";
import { JournalList } from "./journal-list.js";
import { Lanes } from "./lanes.js";
import { Raw } from "./raw.js";
import { Scrubber } from "./scrubber.js";
import { TalkOfTask } from "./talk.js";

const VIEWS = ["lanes", "journal", "agents", "talk", "cost", "raw"] as const;
type ViewName = (typeof VIEWS)[number];

function isView(name: string | null): name is ViewName {
  return VIEWS.some((each) => each === name);
}

export default function Task({
  id = "",
  byKey = false,
}: {
  readonly id?: string | undefined;
  readonly byKey?: boolean;
}) {
  const [task, setTask] = useState<OpenTask | undefined>(undefined);
  const who = caller.value;
  useEffect(() => {
    if (who === null || who === undefined) return;
    const opened = new OpenTask(id, byKey);
    setTask(opened);
    return () => opened.close();
  }, [id, byKey, who === null]);
  if (task === undefined) return <Waiting />;
  return <Opened task={task} />;
}

function Opened({ task }: { readonly task: OpenTask }) {
  const head = task.head.value;
  const version = task.version.value;
  const { query } = route.value;
  const named = query.get("view");
  const view: ViewName = isView(named) ? named : "lanes";
  const asked = Number(query.get("at"));
  const asOf = Number.isInteger(asked) && asked > 0 && asked < task.last ? asked : undefined;
  const chosen = Number(query.get("sel"));
  const selected = asOf ?? (Number.isInteger(chosen) && chosen > 0 ? Math.min(chosen, task.last) : undefined);
  const [filter, setFilter] = useState<LanesFilter>({ actions: true, failures: false, lane: undefined });
  const [clock, setClock] = useState(false);
  const [unfolded, setUnfolded] = useState(false);
  const lanes = useRef<LanesView | undefined>(undefined);
  const links = useMemo(() => new Links(), [task]);
  links.extend(task.entries);
  const costs = useMemo(() => costsOf(task.entries), [version]);
  const first = task.entries[0]?.n ?? 1;
  const entry = selected === undefined ? undefined : task.entries[selected - first];
  const select = (n: number | undefined) =>
    setQuery({ sel: n === undefined ? undefined : String(n), at: undefined });
  const travel = (n: number) =>
    setQuery({
      at: n >= task.last ? undefined : String(Math.max(first, n)),
      sel: n >= task.last ? undefined : String(Math.max(first, n)),
    });
  const live = () => {
    setQuery({ at: undefined, sel: undefined });
    lanes.current?.follow();
  };
  const step = (by: number) => {
    const next =
      view === "lanes"
        ? lanes.current?.step(selected, by)
        : Math.max(first, Math.min(task.last, (selected ?? (by > 0 ? first - 1 : task.last + 1)) + by));
    if (next !== undefined) select(next);
  };
  const ref: TaskRef | undefined = head;
  /** The key came before the task was read. */
  const wantsMessage = useRef(false);
  const message = () => {
    wantsMessage.current = ref === undefined;
    if (ref !== undefined) dialog.value = { kind: "message", task: ref };
  };
  const show = (name: ViewName) => setQuery({ view: name === "lanes" ? undefined : name });
  const onlyLane = () => {
    if (filter.lane !== undefined) setFilter({ ...filter, lane: undefined });
    else if (entry !== undefined) {
      const lane =
        "agent" in entry
          ? entry.agent
          : entry.t === "sent"
            ? (entry.to[0] ?? entry.message.message.sender.address)
            : undefined;
      if (lane !== undefined && task.lanes.laneOf(lane) !== undefined) setFilter({ ...filter, lane });
    }
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    Home: () => select(first),
    End: () => select(task.last),
    "[": () => travel((asOf ?? task.last) - 1),
    "]": () => travel((asOf ?? task.last) + 1),
    "{": () => travel((asOf ?? task.last) - 10),
    "}": () => travel((asOf ?? task.last) + 10),
    l: live,
    m: message,
    a: () => {
      const focus = () => document.querySelector<HTMLElement>("[data-answer]")?.focus();
      if (selected === undefined) return focus();
      // The question stands where the inspector is.
      select(undefined);
      requestAnimationFrame(focus);
    },
    o: onlyLane,
    r: () => {
      const other = entry === undefined ? undefined : links.otherEnd(entry);
      if (other !== undefined) select(other);
      else toast("This entry has no other end.");
    },
    Escape: () => {
      if (selected !== undefined) select(undefined);
      else go(href("tasks"));
    },
    ...Object.fromEntries(VIEWS.map((name, index) => [String(index + 1), () => show(name)])),
  });
  useEffect(() => {
    if (ref === undefined) return;
    if (wantsMessage.current) message();
    screenCommands.value = [
      { name: "Message to this task", key: "m", run: message },
      { name: "Cancel this task", run: () => (dialog.value = { kind: "cancel", tasks: [ref] }) },
      { name: "Live again", key: "l", run: live },
      { name: "Copy a link to this entry", run: () => void copyText(location.href) },
      { name: "Export the journal as JSON lines", run: () => void exportJournal(ref) },
      { name: "Export the lanes as SVG", run: () => saveSvg(task) },
      { name: "Export a Mermaid sequence diagram", run: () => saveMermaid(task) },
      ...task.lanes.lanes.map(({ id }) => ({
        name: `@${id}`,
        run: () => setFilter((before) => ({ ...before, lane: id })),
      })),
    ];
    return () => {
      screenCommands.value = [];
    };
  }, [head, task.lanes.lanes.length]);
  const status = task.status.value;
  const title = head === undefined ? "" : head.title === "" ? head.taskId : head.title;
  const removed = task.removed.value;
  useTop(
    title,
    () => ({
      left: (
        <>
          <a class="crumb wide-only" href={href("tasks")}>
            Tasks /
          </a>
          <a class="crumb phone-only" href={href("tasks")} aria-label="Tasks">
            <Icon name="back" />
          </a>
          <h1 class="cut" title={title}>
            <Text>{title}</Text>
          </h1>
          {head !== undefined && <StatusPill status={status} />}
          {removed && <span class="tag">removed by retention</span>}
        </>
      ),
      right: head !== undefined && (
        <>
          {!removed && (
            <button type="button" class="button wide-only" onClick={message}>
              Message <Kbd>m</Kbd>
            </button>
          )}
          <button
            type="button"
            class="button wide-only"
            onClick={() => void copyText(location.href).then((ok) => ok && toast("Link copied."))}
          >
            Copy link
          </button>
          <MenuButton
            label="More actions"
            icon
            items={[
              ...(removed ? [] : [{ name: "Message", key: "m", run: message }]),
              ...(!removed && (status === "running" || status === "paused")
                ? [
                    {
                      name: "Cancel task",
                      danger: true,
                      run: () => (dialog.value = { kind: "cancel", tasks: [head] }),
                    },
                  ]
                : []),
              { name: "Export journal (JSON lines)", run: () => void exportJournal(head) },
              { name: "Export lanes (SVG)", run: () => saveSvg(task) },
              { name: "Export sequence diagram (Mermaid)", run: () => saveMermaid(task) },
            ]}
          >
            <Icon name="more" />
          </MenuButton>
        </>
      ),
    }),
    [head, status, removed, version === 0],
  );
  if (task.error.value !== undefined && task.entries.length === 0)
    return <ErrorState error={task.error.value} task />;
  if (head === undefined) return <Waiting />;
  const path = isAdmin()
    ? `admin/tasks/${encodeURIComponent(head.key)}/journal`
    : `tasks/${encodeURIComponent(head.taskId)}/journal`;
  const curl = `curl -H "Authorization: Bearer $MAILROOM_TOKEN" '${urlOf(path, { after: (selected ?? 1) - 1, limit: 1 }).href}'`;
  return (
    <div class="task">
      <FactsLine task={task} costs={costs} />
      <div class="task-tabs">
        <Tabs
          label="Views"
          under
          value={view}
          tabs={[
            { id: "lanes", name: "Lanes" },
            { id: "journal", name: "Journal", count: grouped(task.last) },
            {
              id: "agents",
              name: "Agents",
              count: String(task.lanes.lanes.filter(({ kind }) => kind === "agent").length),
            },
            { id: "talk", name: "Conversation", count: String(costs.messages) },
            { id: "cost", name: "Cost" },
            { id: "raw", name: "Raw" },
          ]}
          onPick={show}
        />
        <span class="grow" />
        {view === "lanes" && (
          <div class="row-of chips">
            <button type="button" class="chip" aria-pressed={!clock} onClick={() => setClock(false)}>
              order: journal
            </button>
            <button type="button" class="chip" aria-pressed={clock} onClick={() => setClock(true)}>
              clock
            </button>
            <button
              type="button"
              class="chip"
              aria-pressed={!filter.actions}
              onClick={() => setFilter({ ...filter, actions: !filter.actions })}
            >
              hide actions
            </button>
            <button
              type="button"
              class="chip"
              aria-pressed={filter.failures}
              onClick={() => setFilter({ ...filter, failures: !filter.failures })}
            >
              only failures
            </button>
            {task.lanes.lanes.length > MOST_LANES && (
              <button
                type="button"
                class="chip"
                aria-pressed={unfolded}
                onClick={() => setUnfolded(!unfolded)}
              >
                all {task.lanes.lanes.length} lanes
              </button>
            )}
            {filter.lane !== undefined && (
              <button type="button" class="chip on" onClick={() => setFilter({ ...filter, lane: undefined })}>
                only <Text>{filter.lane}</Text> ×
              </button>
            )}
          </div>
        )}
      </div>
      <div class="task-body">
        <div class="task-view">
          {view === "lanes" && (
            <Lanes
              task={task}
              filter={filter}
              clock={clock}
              unfolded={unfolded}
              selected={selected}
              asOf={asOf}
              onSelect={select}
              view={lanes}
            />
          )}
          {view === "journal" && <JournalList task={task} selected={selected} onSelect={select} />}
          {view === "agents" && <AgentsOfTask task={task} costs={costs} asOf={asOf} onGo={select} />}
          {view === "talk" && <TalkOfTask task={task} />}
          {view === "cost" && (
            <CostOfTask costs={costs} onGo={(n) => setQuery({ view: undefined, sel: String(n) })} />
          )}
          {view === "raw" && <Raw task={task} selected={selected} />}
          {view === "lanes" && asOf === undefined && <Writing task={task} />}
          {view === "lanes" && status === "paused" && entry === undefined && <Question task={task} />}
        </div>
        {entry !== undefined && (view === "lanes" || view === "journal") && (
          <Inspector
            task={task}
            links={links}
            entry={entry}
            onGo={(n) => select(n)}
            onStep={step}
            onClose={() => select(undefined)}
            curl={curl}
          />
        )}
        {entry === undefined && view === "lanes" && status === "paused" && <Question task={task} side />}
      </div>
      {view !== "talk" && (
        <Scrubber
          task={task}
          asOf={asOf}
          live={asOf === undefined && selected === undefined}
          onGo={travel}
          onLive={live}
        />
      )}
    </div>
  );
}

/** The end of a text that is being written, in characters. */
const SHOWN_END = 600;

/** What agents are writing right now: their turns are in the lanes when they have ended. */
function Writing({ task }: { readonly task: OpenTask }) {
  return (
    <>
      {task.writing.value.map(({ agent, tool, text }, index) => (
        <section class="writing" key={`${agent} ${index}`} aria-label={`${agent} writes`}>
          <b>
            <Text>{agent}</Text>
          </b>
          <span class="pulse">{tool === "task_complete" ? "answers" : "writes"}</span>
          <Markdown text={text.length > SHOWN_END ? `… ${text.slice(-SHOWN_END)}` : text} />
        </section>
      ))}
    </>
  );
}

/** What the task waits for, where the inspector would be. */
function Question({ task, side = false }: { readonly task: OpenTask; readonly side?: boolean }) {
  void digestVersion.value;
  const head = task.head.value;
  if (head === undefined || side !== innerWidth > 720) return null;
  const digest = wantDigest(head.key, head.taskId, task.last);
  if (digest === undefined) return null;
  return (
    <aside class={side ? "inspector" : "question-below"} aria-label="Waits for an answer">
      <div class="side-part">
        <Answer task={head} digest={digest} />
      </div>
    </aside>
  );
}

function FactsLine({ task, costs }: { readonly task: OpenTask; readonly costs: ReturnType<typeof costsOf> }) {
  const head = task.head.value;
  const status = task.status.value;
  const now = useNow(status === "running" ? 500 : 60_000);
  const tokens = costs.total.input + costs.total.output;
  const end = status === "running" ? now : costs.to;
  return (
    <div class="task-facts" tabIndex={0} role="region" aria-label="Facts">
      <span>
        Owner
        <b>
          <Text>{head === undefined ? "" : principalOf(head.owner)}</Text>
        </b>
      </span>
      <span>
        Took<b>{duration(end - costs.from)}</b>
      </span>
      {costs.waited > 0 && (
        <span>
          of it waiting for a person<b>{duration(costs.waited)}</b>
        </span>
      )}
      <span>
        Turns<b>{grouped(costs.total.turns)}</b>
        {costs.total.failed > 0 && <span class="bad">{costs.total.failed} failed</span>}
      </span>
      <span>
        Messages<b>{grouped(costs.messages)}</b>
      </span>
      <span>
        Actions<b>{grouped(costs.actions)}</b>
        {costs.failedActions > 0 && <span class="bad">{costs.failedActions} failed</span>}
      </span>
      {tokens > 0 && (
        <span>
          Tokens<b>{grouped(tokens)}</b>
        </span>
      )}
      {costs.total.cost > 0 && (
        <span>
          Cost<b>{money(costs.total.cost)}</b>
        </span>
      )}
      <span class="mono cut task-id" title={head?.taskId ?? ""}>
        <Text>{head?.taskId ?? ""}</Text>
      </span>
    </div>
  );
}
