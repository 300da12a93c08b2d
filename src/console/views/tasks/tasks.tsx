/** The list of tasks. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { caller, isAdmin, ROOT, request, writeDone, writeKey } from "../../data/api.js";
import { digestVersion, knownAgents, wantDigest } from "../../data/digest.js";
import { hello } from "../../data/feed.js";
import type { Status, TaskDigest } from "../../data/shapes.js";
import {
  cancellableTasks,
  counts,
  hasMore,
  heldBack,
  holdStill,
  listError,
  loading,
  loadMore,
  lookedAt,
  releaseHeld,
  showTasks,
  type TaskFilter,
  type TaskRow,
  taskRows,
  tasksVersion,
} from "../../data/tasks.js";
import {
  ago,
  dateAndTime,
  duration,
  grouped,
  money,
  ownerName,
  plural,
  principalOf,
} from "../../model/words.js";
import { dialog, screenCommands } from "../../nav/dialogs.js";
import { useKeys } from "../../nav/keys.js";
import { go, href, route, setQuery } from "../../nav/route.js";
import { useTop } from "../../nav/title.js";
import { Spark } from "../../paint/spark.js";
import { Icon } from "../../ui/icon.js";
import { Command, Kbd, MenuButton, StatusPill, Tabs, toast, useNow } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";
import { VirtualRows } from "../../ui/virtual.js";
import { Answer } from "../parts/answer.js";
import { LedHere } from "../parts/led-here.js";
import { SearchButton } from "../parts/search-button.js";
import { ErrorState } from "../parts/states.js";
import { type Filter, NothingMatches } from "./nothing-matches.js";
import { Outcomes } from "./outcomes.js";

/** A list with fewer rows does not fill the page. */
const FEW = 40;
/** Tasks that are looked at without being asked again. */
const MOST_LOOKED = 20_000;

type Tab = "all" | "running" | "paused" | "failed" | "completed" | "cancelled";
const TABS: readonly { readonly id: Tab; readonly name: string; readonly status: readonly Status[] }[] = [
  { id: "all", name: "All", status: [] },
  { id: "running", name: "Running", status: ["running"] },
  { id: "paused", name: "Needs you", status: ["paused"] },
  { id: "failed", name: "Failed", status: ["failed"] },
  { id: "completed", name: "Completed", status: ["completed"] },
  { id: "cancelled", name: "Cancelled", status: ["cancelled"] },
];

const SINCE: Readonly<Record<string, string>> = {
  "15m": "last 15 min",
  "1h": "last hour",
  "24h": "last 24 h",
  "7d": "last 7 days",
};

function timeWords({ since, until }: TaskFilter): string {
  const words = SINCE[since];
  if (words !== undefined && until === "") return words;
  const at = (text: string) => (Number.isNaN(Date.parse(text)) ? text : dateAndTime(Date.parse(text)));
  return [since === "" ? "" : `from ${SINCE[since] ?? at(since)}`, until === "" ? "" : `until ${at(until)}`]
    .filter(Boolean)
    .join(" ");
}

function filterOf(query: URLSearchParams): TaskFilter & { readonly tab: Tab } {
  const tab = TABS.find(({ id }) => id === query.get("status")) ?? TABS[0];
  return {
    tab: tab?.id ?? "all",
    status: tab?.status ?? [],
    owner: query.get("owner") ?? "",
    since: query.get("since") ?? "",
    until: query.get("until") ?? "",
    text: query.get("q") ?? "",
    agent: query.get("agent") ?? "",
  };
}

/** Whether more than the status is asked for. */
function isFiltered({ owner, since, until, text, agent }: TaskFilter): boolean {
  return [owner, since, until, text, agent].some((each) => each !== "");
}

/** The parts of the filter that are set, each with what remains without it. */
function filtersOf(filter: ReturnType<typeof filterOf>): Filter[] {
  const tab = TABS.find(({ id }) => id === filter.tab);
  const parts: (Filter | false)[] = [
    filter.status.length > 0 && {
      names: ["status"],
      words: `status ${tab?.name.toLowerCase() ?? ""}`,
      without: { ...filter, status: [] },
    },
    filter.owner !== "" && {
      names: ["owner"],
      words: `owner ${filter.owner}`,
      without: { ...filter, owner: "" },
    },
    (filter.since !== "" || filter.until !== "") && {
      names: ["since", "until"],
      words: timeWords(filter),
      without: { ...filter, since: "", until: "" },
    },
    filter.agent !== "" && {
      names: ["agent"],
      words: `agent ${filter.agent}`,
      without: { ...filter, agent: "" },
    },
    filter.text !== "" && {
      names: ["q"],
      words: `text “${filter.text}”`,
      without: { ...filter, text: "" },
    },
  ];
  return parts.filter((part) => part !== false);
}

export function taskHref(row: { readonly key: string; readonly taskId: string }): string {
  return isAdmin() ? href("all", row.key) : href("tasks", row.taskId);
}

export default function Tasks() {
  const { query } = route.value;
  const filter = useMemo(() => filterOf(query), [query.toString()]);
  const narrow = innerWidth <= 720;
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const anchor = useRef(0);
  useLayoutEffect(() => {
    void showTasks(filter);
  }, [filter, caller.value]);
  useTop(
    "Tasks",
    () => ({
      left: (
        <>
          <h1>Tasks</h1>
          {isAdmin() && <span class="tag wide-only">everybody’s</span>}
        </>
      ),
      right: (
        <>
          <SearchButton />
          <button type="button" class="button main" onClick={() => (dialog.value = { kind: "new-task" })}>
            <Icon name="plus" size={14} /> {narrow ? "New" : "New task"} <Kbd>n</Kbd>
          </button>
        </>
      ),
    }),
    [caller.value],
  );
  void tasksVersion.value;
  const rows = taskRows();
  const at = Math.max(
    0,
    rows.findIndex(({ key }) => key === chosen),
  );
  const row = rows[at];
  const pick = (index: number) => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (next !== undefined) setChosen(next.key);
  };
  const open = () => {
    if (row !== undefined) go(taskHref(row));
  };
  const mark = (range: boolean) => {
    if (row === undefined) return;
    const next = new Set(marked);
    if (range)
      for (const each of rows.slice(Math.min(anchor.current, at), Math.max(anchor.current, at) + 1))
        next.add(each.key);
    else if (!next.delete(row.key)) next.add(row.key);
    anchor.current = at;
    setMarked(next);
    if (!range) pick(at + 1);
  };
  const cancelAll = () => {
    const tasks = rows.filter(
      ({ key, status }) => marked.has(key) && (status === "running" || status === "paused"),
    );
    if (tasks.length === 0) toast("None of the selected tasks is running.");
    else dialog.value = { kind: "cancel", tasks };
  };
  const cancelFiltered = async () => {
    try {
      const tasks = await cancellableTasks();
      if (tasks.length === 0) toast("None of these tasks is running.");
      else dialog.value = { kind: "cancel", tasks };
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
  };
  useKeys({
    j: () => pick(at + 1),
    k: () => pick(at - 1),
    ArrowDown: () => pick(at + 1),
    ArrowUp: () => pick(at - 1),
    Home: () => pick(0),
    End: () => pick(rows.length - 1),
    Enter: open,
    a: () => document.querySelector<HTMLElement>("[data-answer]")?.focus(),
    m: () => {
      if (row !== undefined) dialog.value = { kind: "message", task: row };
    },
    x: () => mark(false),
    "Shift+x": () => mark(true),
    ".": cancelAll,
    Escape: () => setMarked(new Set()),
  });
  useEffect(() => {
    screenCommands.value = [
      { name: "Cancel the selected tasks", key: ".", run: cancelAll },
      { name: "Cancel all tasks of this list", run: () => void cancelFiltered() },
      ...TABS.map(({ id, name }) => ({
        name: `Show ${name.toLowerCase()} tasks`,
        run: () => setQuery({ status: id === "all" ? undefined : id }),
      })),
    ];
    return () => {
      screenCommands.value = [];
    };
  }, [marked, rows.length]);
  const total = counts.value;
  const countOf = (tab: Tab): string | undefined => {
    if (total === undefined) return undefined;
    const sum =
      tab === "all"
        ? total.running + total.paused + total.completed + total.failed + total.cancelled
        : total[tab];
    return grouped(sum);
  };
  const none = rows.length === 0 && !loading.value;
  const unfiltered = filter.tab === "all" && !isFiltered(filter);
  // A page of a search may have few tasks or none: the next one follows by itself, up to a limit.
  const isSparse = rows.length < FEW && hasMore.value && lookedAt.value > 0;
  const looks = isSparse && lookedAt.value < MOST_LOOKED;
  useEffect(() => {
    if (looks && !loading.value) void loadMore();
  }, [looks, loading.value]);
  const canCancel = hasMore.value || rows.some(({ status }) => status === "running" || status === "paused");
  return (
    <div class="tasks">
      <div class="tasks-list">
        <div class="tasks-bar">
          <div class="tasks-filter">
            <Tabs
              label="Status"
              value={filter.tab}
              tabs={TABS.filter(({ id }) => id !== "cancelled" || (total?.cancelled ?? 0) > 0).map(
                ({ id, name }) => ({ id, name, count: countOf(id) }),
              )}
              onPick={(id) => setQuery({ status: id === "all" ? undefined : id })}
            />
            <span class="grow" />
            <Chips filter={filter} />
          </div>
          <Outcomes until={filter.until} />
        </div>
        {listError.value !== undefined && rows.length === 0 ? (
          <ErrorState error={listError.value} onRetry={() => void showTasks(filter)} />
        ) : none && unfiltered ? (
          <NoTasks />
        ) : rows.length === 0 && looks ? (
          <div class="empty">
            <p class="pulse">Looking: {plural(lookedAt.value, "task")} so far</p>
          </div>
        ) : none ? (
          <NothingMatches filter={filter} filters={filtersOf(filter)} />
        ) : (
          <>
            {heldBack.value > 0 && (
              <button type="button" class="held-back" onClick={releaseHeld}>
                {heldBack.value} new
              </button>
            )}
            {!narrow && <Head />}
            <VirtualRows
              count={rows.length}
              rowHeight={narrow ? 61 : 33}
              label="Tasks"
              role="listbox"
              selected={chosen === undefined ? undefined : at}
              onPointed={holdStill}
              onNearEnd={() => {
                if (hasMore.value) void loadMore();
              }}
              render={(index) => {
                const each = rows[index];
                if (each === undefined) return null;
                const pickThis = () => {
                  if (narrow || chosen === each.key) go(taskHref(each));
                  else setChosen(each.key);
                };
                return (
                  <Row
                    key={each.key}
                    row={each}
                    narrow={narrow}
                    selected={!narrow && index === at}
                    marked={marked.has(each.key)}
                    onPick={pickThis}
                    onOpen={() => go(taskHref(each))}
                  />
                );
              }}
            />
          </>
        )}
        <footer class="tasks-foot">
          {marked.size > 0 ? (
            <>
              <span>{plural(marked.size, "task")} selected</span>
              <button type="button" class="button small danger" onClick={cancelAll}>
                Cancel {marked.size === 1 ? "it" : `${grouped(marked.size)} tasks`}
              </button>
              <button type="button" class="button small" onClick={() => setMarked(new Set())}>
                Clear
              </button>
            </>
          ) : (
            <span>
              {plural(rows.length, "task")}
              {hasMore.value ? (isSparse ? ` of ${grouped(lookedAt.value)} looked at` : ", more below") : ""}.{" "}
              {isSparse && !looks ? (
                <button type="button" class="button small" onClick={() => void loadMore()}>
                  Look further
                </button>
              ) : none ? null : unfiltered || !canCancel ? (
                "What waits for you comes first, then what moved last."
              ) : (
                <button type="button" class="button small danger" onClick={() => void cancelFiltered()}>
                  Cancel all of them
                </button>
              )}
            </span>
          )}
          <span class="grow" />
          <span class="hints">
            <Kbd>j</Kbd> <Kbd>k</Kbd> move <Kbd>a</Kbd> answer <Kbd>x</Kbd> select <Kbd>?</Kbd> all keys
          </span>
        </footer>
      </div>
      {!narrow && row !== undefined && <Side row={row} />}
    </div>
  );
}

type Edited = "owner" | "agent" | "text";

function Chips({ filter }: { readonly filter: TaskFilter }) {
  const [editing, setEditing] = useState<Edited | undefined>(undefined);
  const edit = (name: Edited, parameter: string, value: string, hint: string) =>
    editing === name ? (
      <input
        class="field chip-field"
        aria-label={hint}
        placeholder={hint}
        list={name === "agent" ? "known-agents" : undefined}
        defaultValue={value}
        ref={(element) => element?.focus()}
        onKeyDown={(event) => {
          if (event.key === "Enter") {
            setQuery({ [parameter]: event.currentTarget.value.trim() });
            setEditing(undefined);
          } else if (event.key === "Escape") setEditing(undefined);
        }}
        onBlur={(event) => {
          setQuery({ [parameter]: event.currentTarget.value.trim() });
          setEditing(undefined);
        }}
      />
    ) : value === "" ? (
      <button type="button" class="chip" onClick={() => setEditing(name)}>
        + {name}
      </button>
    ) : (
      <button
        type="button"
        class="chip on"
        aria-label={`Remove the filter ${name} ${value}`}
        onClick={() => setQuery({ [parameter]: undefined })}
      >
        <Text>{name === "agent" ? `agent ${value}` : value}</Text> ×
      </button>
    );
  return (
    <div class={`row-of chips ${isFiltered(filter) ? "active" : ""}`}>
      {editing === "agent" && (
        <datalist id="known-agents">
          {knownAgents().map((agent) => (
            <option value={agent} key={agent} />
          ))}
        </datalist>
      )}
      {filter.since === "" && filter.until === "" ? (
        <MenuButton
          class="chip"
          label="Time"
          items={Object.entries(SINCE).map(([since, name]) => ({ name, run: () => setQuery({ since }) }))}
        >
          + time
        </MenuButton>
      ) : (
        <button
          type="button"
          class="chip on"
          aria-label={`Remove the filter ${timeWords(filter)}`}
          onClick={() => setQuery({ since: undefined, until: undefined })}
        >
          {timeWords(filter)} ×
        </button>
      )}
      {isAdmin() && edit("owner", "owner", filter.owner, "user:ann")}
      {edit("agent", "agent", filter.agent, "name of an agent")}
      {edit("text", "q", filter.text, "part of a title or id")}
    </div>
  );
}

function Head() {
  return (
    <div class="task-row head" aria-hidden="true">
      <span>Status</span>
      <span>Task</span>
      <span>Owner</span>
      <span>Agents over time</span>
      <span class="right">Entries</span>
      <span class="right">Cost</span>
      <span class="right">Took</span>
      <span class="right">Updated</span>
    </div>
  );
}

interface RowProps {
  readonly row: TaskRow;
  readonly narrow: boolean;
  readonly selected: boolean;
  readonly marked: boolean;
  readonly onPick: () => void;
  readonly onOpen: () => void;
}

function took(row: TaskRow, now: number): number {
  return (row.status === "running" ? now : row.updatedAt) - row.startedAt;
}

function Row({ row, narrow, selected, marked, onPick, onOpen }: RowProps) {
  void digestVersion.value;
  const digest = wantDigest(row.key, row.taskId, row.number);
  const now = useNow(row.status === "running" ? 500 : 60_000);
  const fresh = row.changedAt > 0 && performance.now() - row.changedAt < 1_000;
  const title = row.title === "" ? row.taskId : row.title;
  const entries = Math.max(row.number, digest?.number ?? 0);
  if (narrow) {
    return (
      <div
        role="option"
        tabIndex={-1}
        aria-selected={selected}
        class={`task-card ${fresh ? "fresh" : ""}`}
        onClick={onPick}
        onKeyDown={() => {}}
      >
        <span class="cut title">
          <Text>{title}</Text>
        </span>
        <StatusPill status={row.status} />
        <span class="dim num">
          <Text>{ownerName(row.owner)}</Text> <span>#{entries}</span> <span>{duration(took(row, now))}</span>
        </span>
        <Spark digest={digest} width={96} height={18} running={row.status === "running"} />
      </div>
    );
  }
  return (
    <div
      role="option"
      tabIndex={-1}
      aria-selected={selected}
      class={`task-row ${selected ? "selected" : ""} ${marked ? "marked-row" : ""} ${fresh ? "fresh" : ""}`}
      onClick={onPick}
      onDblClick={onOpen}
      onKeyDown={() => {}}
    >
      <span>
        <StatusPill status={row.status} />
      </span>
      <span class="cut title">
        <Text>{title}</Text>
      </span>
      <span class="cut dim">
        <Text>{ownerName(row.owner)}</Text>
      </span>
      <span>
        <Spark digest={digest} width={120} height={18} running={row.status === "running"} />
      </span>
      <span class="right num">{entries === 0 ? "" : grouped(entries)}</span>
      <span class="right num dim">{digest?.cost == null ? "–" : money(digest.cost)}</span>
      <span class="right num">{duration(took(row, now))}</span>
      <span class="right num dim">
        <Ago at={row.updatedAt} />
      </span>
    </div>
  );
}

function Ago({ at }: { readonly at: number }) {
  return <>{ago(Math.max(0, useNow(5_000) - at))}</>;
}

function Side({ row }: { readonly row: TaskRow }) {
  void digestVersion.value;
  const digest = wantDigest(row.key, row.taskId, row.number);
  const running = row.status === "running" || row.status === "paused";
  return (
    <aside class="side" aria-label="Chosen task">
      <div class="scroll side-scroll" tabIndex={0} role="region" aria-label="About the chosen task">
        <section class="side-part">
          <h2 class="side-title">
            <Text>{row.title === "" ? row.taskId : row.title}</Text>
          </h2>
          <div class="row-of">
            <StatusPill status={row.status} />
            <span class="dim">
              {row.status === "paused" ? (
                <>
                  for <For at={row.updatedAt} />
                </>
              ) : null}
            </span>
            <span class="grow" />
            <span class="dim">
              <Kbd>Enter</Kbd> open
            </span>
          </div>
          <dl class="facts">
            <dt>Task</dt>
            <dd class="mono cut" title={row.taskId}>
              <Text>{row.taskId}</Text>
            </dd>
            <dt>Owner</dt>
            <dd>
              <Text>{principalOf(row.owner)}</Text>
            </dd>
            {digest !== undefined && <Agents digest={digest} />}
            {digest !== undefined && <Figures digest={digest} />}
          </dl>
        </section>
        {digest !== undefined && row.status === "paused" && (
          <section class="side-part">
            <Answer key={row.key} task={row} digest={digest} />
          </section>
        )}
        <LedHere key={row.key} taskKey={row.key} taskId={row.taskId} number={row.number} />
      </div>
      <footer class="side-foot">
        <a class="button" href={taskHref(row)}>
          Open <Kbd>⏎</Kbd>
        </a>
        <button type="button" class="button" onClick={() => (dialog.value = { kind: "message", task: row })}>
          Message <Kbd>m</Kbd>
        </button>
        <span class="grow" />
        {running && (
          <button
            type="button"
            class="button danger"
            onClick={() => (dialog.value = { kind: "cancel", tasks: [row] })}
          >
            Cancel task
          </button>
        )}
      </footer>
    </aside>
  );
}

function For({ at }: { readonly at: number }) {
  return <>{duration(Math.max(0, useNow() - at))}</>;
}

/** Names that are shown; the task has all of them. */
const MOST_NAMES = 8;

function Agents({ digest: { agents, others = [] } }: { readonly digest: TaskDigest }) {
  const names = [...agents, ...others];
  if (names.length === 0) return null;
  return (
    <>
      <dt>Agents</dt>
      <dd class="names">
        {names.slice(0, MOST_NAMES).map((name) => (
          <button
            type="button"
            class="link"
            key={name}
            title="Show only tasks of this agent"
            onClick={() => setQuery({ agent: name })}
          >
            <Text>{name}</Text>
          </button>
        ))}
        {names.length > MOST_NAMES && <span class="dim">and {names.length - MOST_NAMES} more</span>}
      </dd>
    </>
  );
}

function Figures({ digest }: { readonly digest: TaskDigest }) {
  const tokens = digest.tokens.input + digest.tokens.output;
  return (
    <>
      <dt>Journal</dt>
      <dd>
        {plural(digest.number, "entry", "entries")}, {plural(digest.messages, "message")},{" "}
        {plural(digest.turns, "turn")}
        {digest.failed_turns > 0 && <span class="bad">, {digest.failed_turns} failed</span>}
      </dd>
      {(tokens > 0 || digest.cost !== null) && (
        <>
          <dt>Cost</dt>
          <dd>
            {grouped(tokens)} tokens{digest.cost === null ? "" : `, ${money(digest.cost)}`}
          </dd>
        </>
      )}
    </>
  );
}

function NoTasks() {
  const [asking, setAsking] = useState(false);
  const root = ROOT.href.replace(/\/$/, "");
  const ask = async () => {
    setAsking(true);
    try {
      await request("message", {
        body: {
          body: "What will the weather be like in Oslo tomorrow, and what is 12 * (3 + 4)?",
          wait: false,
        },
        key: writeKey("first"),
      });
      writeDone("first");
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
    setAsking(false);
  };
  return (
    <div class="empty">
      <h2>No tasks yet</h2>
      <p>
        Ask the swarm{hello.value === undefined ? "" : ` “${hello.value.swarm}”`} something. Each of these
        makes a task:
      </p>
      <div class="commands">
        <Command text={`npx mailroom client ${root} message "What is 2 ^ 10?"`} />
        <Command
          text={`curl ${root}/message -H 'content-type: application/json' -d '{"body": "Weather in Rome?"}'`}
        />
        <Command text={`npx mailroom client ${root}`} />
      </div>
      <button type="button" class="button main" disabled={asking} onClick={() => void ask()}>
        Ask a first question here
      </button>
    </div>
  );
}
