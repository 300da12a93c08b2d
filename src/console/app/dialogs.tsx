/** The dialogs that any screen can ask for. */
import { useEffect, useRef, useState } from "preact/hooks";
import {
  ApiError,
  actAs,
  caller,
  callerName,
  isAdmin,
  readOnly,
  request,
  writeDone,
  writeKey,
} from "../data/api.js";
import { digestVersion, knownAgents } from "../data/digest.js";
import { otherSwarms } from "../data/neighbors.js";
import type { Peer, SwarmDump, TaskSummary } from "../data/shapes.js";
import { firstLine, grouped, plural, principalOf } from "../model/words.js";
import { dialog, screenCommands, type TaskRef } from "../nav/dialogs.js";
import { setSingleKeys, singleKeys, useKeys } from "../nav/keys.js";
import { go, href, route, setQuery } from "../nav/route.js";
import { Icon } from "../ui/icon.js";
import { Dialog, Kbd, toast } from "../ui/kit.js";
import { Text } from "../ui/text.js";
import { PLACES } from "./frame.js";

const close = () => {
  dialog.value = undefined;
};

export function Dialogs() {
  const open = dialog.value;
  switch (open?.kind) {
    case undefined:
      return null;
    case "new-task":
      return <Compose />;
    case "message":
      return <Compose task={open.task} detailed={open.more === true} />;
    case "cancel":
      return <CancelTasks tasks={open.tasks} />;
    case "palette":
      return <Palette />;
    case "keys":
      return <Keys />;
    case "identity":
      return <Identity />;
  }
}

/** The owner of a task, as a caller is named. */
function ownerOf(task: TaskRef): string {
  return principalOf(task.owner);
}

function useDraft(name: string): [string, (text: string) => void] {
  const key = `mailroom.draft:${name}`;
  const [text, setText] = useState(sessionStorage.getItem(key) ?? "");
  return [
    text,
    (next) => {
      setText(next);
      if (next === "") sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, next);
    },
  ];
}

/** A new task, or a message to one that is there. */
function Compose({ task, detailed = false }: { readonly task?: TaskRef; readonly detailed?: boolean }) {
  const name = task === undefined ? "new" : task.key;
  const [body, setBody] = useDraft(name);
  const [subject, setSubject] = useState("");
  const [type, setType] = useState("request");
  const [entrypoint, setEntrypoint] = useState("");
  const [steps, setSteps] = useState("");
  const [more, setMore] = useState(detailed);
  const [stay, setStay] = useState(false);
  const [busy, setBusy] = useState(false);
  const owner = task === undefined ? callerName() : ownerOf(task);
  const foreign = task !== undefined && owner !== callerName();
  const may = !foreign || caller.value?.dev === true;
  const send = async () => {
    if (body.trim() === "" || busy) return;
    setBusy(true);
    const mine = dialog.value;
    const what = `message:${name}`;
    try {
      const { task_id } = await request<{ task_id: string }>("message", {
        key: writeKey(what),
        as: foreign ? owner : undefined,
        body: {
          body,
          wait: false,
          ...(task !== undefined && { task_id: task.taskId, resume_from: "user_response" }),
          ...(subject !== "" && { subject }),
          ...(type !== "request" && { msg_type: type }),
          ...(entrypoint !== "" && { entrypoint }),
          ...(steps !== "" && { kwargs: { max_steps: steps } }),
        },
      });
      writeDone(what);
      setBody("");
      // Another dialog may have been opened while the answer was on its way.
      if (dialog.value === mine) close();
      if (task === undefined && !stay) go(href("tasks", task_id));
      else toast("Sent.", "good");
    } catch (error) {
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) writeDone(what);
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
    setBusy(false);
  };
  return (
    <Dialog title={task === undefined ? "New task" : "Message"} onClose={close}>
      {task !== undefined && (
        <p class="dim cut">
          To <Text>{task.title === "" ? task.taskId : firstLine(task.title)}</Text>
        </p>
      )}
      {!may ? (
        <div class="notice">
          <span>
            Only <Text>{owner}</Text> may write to this task. You are {callerName()}.
          </span>
        </div>
      ) : (
        <>
          <textarea
            class="field"
            rows={5}
            data-first
            aria-label={task === undefined ? "What is asked" : "Message"}
            placeholder={
              task === undefined
                ? "Ask the swarm something. The first line becomes the title."
                : `Write as ${owner} …`
            }
            value={body}
            onInput={(event) => setBody(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                void send();
              }
            }}
          />
          {more && (
            <div class="row-of">
              <label class="labelled">
                <span>Subject</span>
                <input
                  class="field"
                  value={subject}
                  onInput={(event) => setSubject(event.currentTarget.value)}
                />
              </label>
              <label class="labelled">
                <span>Type</span>
                <select class="field" value={type} onChange={(event) => setType(event.currentTarget.value)}>
                  <option value="request">request</option>
                  <option value="broadcast">broadcast</option>
                  <option value="interrupt">interrupt</option>
                </select>
              </label>
              <label class="labelled">
                <span>Agent</span>
                <input
                  class="field"
                  placeholder="the usual one"
                  value={entrypoint}
                  onInput={(event) => setEntrypoint(event.currentTarget.value)}
                />
              </label>
              <label class="labelled">
                <span>Step limit</span>
                <input
                  class="field"
                  inputMode="numeric"
                  placeholder="default"
                  value={steps}
                  onInput={(event) => setSteps(event.currentTarget.value.replaceAll(/\D/g, ""))}
                />
              </label>
            </div>
          )}
          <footer>
            <button type="button" class="button quiet" aria-expanded={more} onClick={() => setMore(!more)}>
              {more ? "Less" : "More"}
            </button>
            {task === undefined && (
              <label class="dim check">
                <input
                  type="checkbox"
                  checked={stay}
                  onChange={(event) => setStay(event.currentTarget.checked)}
                />{" "}
                stay here
              </label>
            )}
            <span class="grow" />
            <span class="dim">as {owner}</span>
            <button
              type="button"
              class="button main"
              disabled={busy || body.trim() === "" || readOnly.value !== undefined}
              title={readOnly.value}
              onClick={() => void send()}
            >
              {busy ? "Sending" : "Send"} <Kbd>Ctrl ⏎</Kbd>
            </button>
          </footer>
          {readOnly.value !== undefined && <p class="wait">{readOnly.value}</p>}
        </>
      )}
    </Dialog>
  );
}

function CancelTasks({ tasks }: { readonly tasks: readonly TaskRef[] }) {
  const [done, setDone] = useState<number | undefined>(undefined);
  const [first] = tasks;
  const cancel = async () => {
    let failed = 0;
    setDone(0);
    for (const [index, task] of tasks.entries()) {
      const path = isAdmin()
        ? `admin/tasks/${encodeURIComponent(task.key)}/cancel`
        : `tasks/${encodeURIComponent(task.taskId)}/cancel`;
      await request(path, { method: "POST" }).catch(() => failed++);
      setDone(index + 1);
    }
    close();
    if (failed > 0)
      toast(`${plural(failed, "task")} could not be cancelled: already ended, or not yours.`, "bad");
    else toast(tasks.length === 1 ? "Cancelled." : `${grouped(tasks.length)} tasks cancelled.`);
  };
  return (
    <Dialog
      title={tasks.length === 1 ? "Cancel this task?" : `Cancel ${grouped(tasks.length)} tasks?`}
      onClose={close}
    >
      {tasks.length === 1 && first !== undefined && (
        <p>
          <Text>{first.title === "" ? first.taskId : first.title}</Text>
        </p>
      )}
      <p class="dim">
        Running actions are stopped. What is written stays readable, and a new message continues a task.
      </p>
      <footer>
        <span class="grow" />
        <button type="button" class="button" onClick={close}>
          Keep {tasks.length === 1 ? "it" : "them"}
        </button>
        <button
          type="button"
          class="button danger"
          data-first
          disabled={done !== undefined || readOnly.value !== undefined}
          onClick={() => void cancel()}
        >
          {done !== undefined
            ? `${done} of ${tasks.length}`
            : tasks.length === 1
              ? "Cancel task"
              : `Cancel ${grouped(tasks.length)} tasks`}
        </button>
      </footer>
    </Dialog>
  );
}

interface Choice {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  readonly run: () => void;
}

interface Hit {
  readonly key: string;
  readonly task_id: string;
  readonly title: string | null;
  readonly n: number;
  readonly kind: string;
  readonly from: string | null;
  readonly snippet: string;
}

/** Names of agents and swarms that are offered at once. */
const MOST_NAMES = 5;

/** Agents and other swarms, by name. */
function useNames(): readonly Choice[] {
  void digestVersion.value;
  const [defined, setDefined] = useState<readonly string[]>([]);
  const [swarms, setSwarms] = useState<readonly string[]>([]);
  useEffect(() => {
    request<{ swarms: Peer[] }>("swarms").then(
      (list) => setSwarms(otherSwarms(list.swarms).map(({ swarm_name }) => swarm_name)),
      () => {},
    );
    if (!isAdmin()) return;
    request<SwarmDump>("swarms/dump").then(
      ({ swarm }) => setDefined(swarm.agents.map(({ name }) => name)),
      () => {},
    );
  }, []);
  const agents = [...new Set([...defined, ...knownAgents()])];
  return [
    ...agents.map((agent) => ({
      id: `agent ${agent}`,
      name: `Tasks of ${agent}`,
      note: "agent",
      run: () => go(href("tasks", undefined, { agent })),
    })),
    ...swarms.map((swarm) => ({
      id: `swarm ${swarm}`,
      name: `Swarm ${swarm}`,
      note: "federation",
      run: () => go(href("federation", swarm)),
    })),
  ];
}

function Palette() {
  const [text, setText] = useState("");
  const names = useNames();
  const [found, setFound] = useState<readonly Choice[]>([]);
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const only = text.startsWith(">");
  const query = (only ? text.slice(1) : text).trim().toLowerCase();
  const commands: Choice[] = [
    ...PLACES.filter(({ admin }) => admin !== true || isAdmin()).map(({ screen, name, key }) => ({
      id: `go ${screen}`,
      name,
      note: `g ${key}`,
      run: () => go(href(screen)),
    })),
    { id: "new", name: "New task", note: "n", run: () => (dialog.value = { kind: "new-task" }) },
    ...screenCommands.value.map(({ name, key, run }) => ({ id: name, name, note: key ?? "", run })),
    { id: "keys", name: "All keys", note: "?", run: () => (dialog.value = { kind: "keys" }) },
  ].filter(({ name }) => name.toLowerCase().includes(query));
  useEffect(() => {
    setAt(0);
    if (only || query.length < 2) {
      setFound([]);
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const path = isAdmin() ? "admin/tasks" : "tasks";
      const tasks = request<{ tasks: TaskSummary[] }>(path, {
        query: { q: query, limit: 8 },
        signal: stop.signal,
      }).then(
        (page) =>
          page.tasks.map((task) => ({
            id: `task ${task.task_id}`,
            name: task.title ?? task.task_id,
            note: task.status,
            run: () =>
              go(isAdmin() && task.key !== undefined ? href("all", task.key) : href("tasks", task.task_id)),
          })),
        () => [],
      );
      const hits = request<{ hits: Hit[] }>("search", {
        query: { q: query, limit: 12 },
        signal: stop.signal,
      }).then(
        (page) =>
          page.hits.map((hit) => ({
            id: `hit ${hit.key} ${hit.n}`,
            name: hit.snippet.replaceAll("\u0001", "").replaceAll("\u0002", ""),
            note: `${hit.from ?? hit.kind} #${hit.n}`,
            run: () =>
              go(
                isAdmin()
                  ? href("all", hit.key, { sel: String(hit.n) })
                  : href("tasks", hit.task_id, { sel: String(hit.n) }),
              ),
          })),
        () => [],
      );
      void Promise.all([tasks, hits]).then(([one, other]) => {
        if (!stop.signal.aborted) setFound([...one, ...other]);
      });
    }, 160);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  const entry = /^#(\d+)$/.exec(query)?.[1];
  const inTask = route.value.id !== undefined && /^(?:tasks|all)$/.test(route.value.screen);
  const jump: Choice[] =
    entry !== undefined && inTask
      ? [
          {
            id: "entry",
            name: `Entry #${entry} of this task`,
            note: "",
            run: () => setQuery({ sel: entry, at: undefined }),
          },
        ]
      : [];
  const named = names.filter(({ name }) => name.toLowerCase().includes(query)).slice(0, MOST_NAMES);
  const choices = [...jump, ...(query === "" || only ? commands : [...named, ...found, ...commands])];
  const run = (choice: Choice | undefined) => {
    if (choice === undefined) return;
    close();
    choice.run();
  };
  useKeys({}, false);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <Dialog title="Search and commands" onClose={close} plain>
      <div class="palette">
        <div class="palette-field">
          <Icon name="search" />
          <input
            data-first
            role="combobox"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant={choices[at] === undefined ? undefined : `choice-${at}`}
            aria-label="Search tasks, messages, agents and commands"
            placeholder="Search tasks, messages, agents; > for commands"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "ArrowDown") setAt(Math.min(at + 1, choices.length - 1));
              else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
              else if (event.key === "Enter") run(choices[at]);
              else return;
              event.preventDefault();
            }}
          />
          <Kbd>Esc</Kbd>
        </div>
        <div
          id="palette-list"
          class="palette-list scroll"
          role="listbox"
          aria-label="Found"
          ref={list}
          tabIndex={0}
        >
          {choices.map((choice, index) => (
            <div
              role="option"
              tabIndex={-1}
              id={`choice-${index}`}
              key={choice.id}
              aria-selected={index === at}
              onClick={() => run(choice)}
              onKeyDown={() => {}}
              onMouseMove={() => setAt(index)}
            >
              <span class="cut">
                <Text>{choice.name}</Text>
              </span>
              <span class="dim">
                <Text>{choice.note}</Text>
              </span>
            </div>
          ))}
          {choices.length === 0 && <p class="dim palette-none">Nothing found</p>}
        </div>
      </div>
    </Dialog>
  );
}

const HELP: readonly (readonly [string, string])[] = [
  ["/  Ctrl K", "search and commands"],
  ["j k  ↓ ↑", "next, previous"],
  ["Enter  Esc", "open, back"],
  ["n", "new task"],
  ["m", "message to this task"],
  ["a", "answer"],
  ["[ ]  Shift", "one entry back, forward; ten"],
  ["l", "live again"],
  ["r", "from a request to its response and back"],
  ["o", "only this agent’s lane"],
  ["x  Shift x", "select row, range"],
  [".", "cancel the selection"],
  ["1 … 6", "views of a task"],
  ["t", "light or dark"],
  ["?", "this list"],
];

function Keys() {
  return (
    <Dialog title="Keys" onClose={close}>
      <div class="keys-help">
        {HELP.map(([keys, does]) => (
          <div key={keys}>
            <Kbd>{keys}</Kbd>
            <span>{does}</span>
          </div>
        ))}
        {PLACES.map(({ key, name, screen }) => (
          <div key={screen}>
            <Kbd>{`g ${key}`}</Kbd>
            <span>{name}</span>
          </div>
        ))}
      </div>
      <label class="check">
        <input
          type="checkbox"
          data-first
          checked={singleKeys.value}
          onChange={(event) => setSingleKeys(event.currentTarget.checked)}
        />{" "}
        Single letters act as keys
      </label>
    </Dialog>
  );
}

function Identity() {
  const [name, setName] = useState(callerName());
  const valid = /^(?:user|admin):\S+$/.test(name);
  return (
    <Dialog title="Act as somebody else" onClose={close}>
      <p class="dim">This server runs in development mode and accepts every name.</p>
      <input
        class="field mono"
        data-first
        aria-label="Role and id"
        value={name}
        onInput={(event) => setName(event.currentTarget.value.trim())}
        onKeyDown={(event) => {
          if (event.key === "Enter" && valid) actAs(name);
        }}
      />
      <div class="row-of">
        {["admin:dev", "user:dev", "user:ann"].map((each) => (
          <button type="button" class="chip" key={each} onClick={() => actAs(each)}>
            {each}
          </button>
        ))}
        <span class="grow" />
        <button type="button" class="button main" disabled={!valid} onClick={() => actAs(name)}>
          Use it
        </button>
      </div>
    </Dialog>
  );
}
