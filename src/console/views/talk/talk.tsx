/** Conversations: who said what in them, to whom it is visible, and a way to say something. */
import { useEffect, useRef, useState } from "preact/hooks";
import { caller, callerName } from "../../data/api.js";
import { MapConnection } from "../../data/map.js";
import type { Conversation, ConversationTurn, Participant } from "../../data/shapes.js";
import { audienceOf } from "../../model/member-words.js";
import { ago, clock, plural } from "../../model/words.js";
import { useKeys } from "../../nav/keys.js";
import { go, href, route } from "../../nav/route.js";
import { useTop } from "../../nav/title.js";
import { Icon } from "../../ui/icon.js";
import { Json } from "../../ui/json.js";
import { Dialog, Kbd, Panel, Tabs, toast, useNow } from "../../ui/kit.js";
import { Markdown, Text } from "../../ui/text.js";
import { SearchButton } from "../parts/search-button.js";
import { ErrorState, Waiting } from "../parts/states.js";
import { Audience, Members } from "./members.js";

type Which = "all" | "talk" | "tasks";

export default function Talk() {
  const [map, setMap] = useState<MapConnection | undefined>(undefined);
  const [lost, setLost] = useState(0);
  const [changes, setChanges] = useState(0);
  const [list, setList] = useState<readonly Conversation[] | undefined>(undefined);
  const [error, setError] = useState<Error | undefined>(undefined);
  const [which, setWhich] = useState<Which>("all");
  const [creating, setCreating] = useState(false);
  const pending = useRef<number | undefined>(undefined);
  useEffect(() => {
    if (caller.value === null || caller.value === undefined) return;
    const again = () => {
      window.clearTimeout(pending.current);
      pending.current = window.setTimeout(() => setChanges((count) => count + 1), 200);
    };
    const made = new MapConnection(again, () => setTimeout(() => setLost((count) => count + 1), 1_500));
    made.ready.then(
      () => setMap(made),
      (failed: unknown) => setError(failed instanceof Error ? failed : new Error(String(failed))),
    );
    return () => made.close();
  }, [lost, caller.value]);
  useEffect(() => {
    if (map === undefined) return;
    map.call<{ conversations: Conversation[] }>("mail/list", { filter: {} }).then(
      ({ conversations }) => {
        setList([...conversations].sort((a, b) => b.updatedAt - a.updatedAt));
        setError(undefined);
      },
      (failed: unknown) => setError(failed instanceof Error ? failed : new Error(String(failed))),
    );
  }, [map, changes]);
  useTop(
    "Conversations",
    () => ({
      left: <h1>Conversations</h1>,
      right: (
        <>
          <SearchButton />
          <button type="button" class="button main" onClick={() => setCreating(true)}>
            <Icon name="plus" size={14} /> New
          </button>
        </>
      ),
    }),
    [],
  );
  const isTask = (one: Conversation) => typeof one.metadata.task_id === "string";
  const shown = (list ?? []).filter((one) => which === "all" || (which === "tasks") === isTask(one));
  const { id } = route.value;
  const at = shown.findIndex((one) => one.id === id);
  const pick = (index: number) => {
    const next = shown[Math.max(0, Math.min(shown.length - 1, index))];
    if (next !== undefined) go(href("talk", next.id));
  };
  useKeys({
    j: () => pick(at + 1),
    k: () => pick(at - 1),
    ArrowDown: () => pick(at + 1),
    ArrowUp: () => pick(at - 1),
  });
  if (error !== undefined && list === undefined)
    return <ErrorState error={error} onRetry={() => setLost(lost + 1)} />;
  if (list === undefined) return <Waiting />;
  const chosen = list.find((one) => one.id === id);
  return (
    <div class={`needs talk-screen ${chosen === undefined ? "" : "one"}`}>
      <div class="needs-list">
        <div class="needs-bar">
          <Tabs
            label="Which conversations"
            value={which}
            tabs={[
              { id: "all", name: "All", count: String(list.length) },
              { id: "talk", name: "Direct" },
              { id: "tasks", name: "Tasks" },
            ]}
            onPick={setWhich}
          />
        </div>
        <div class="scroll grow" role="listbox" aria-label="Conversations" tabIndex={0}>
          {shown.map((one) => (
            <Line key={one.id} one={one} task={isTask(one)} selected={one.id === id} />
          ))}
          {shown.length === 0 && <p class="inside dim side-part">No conversation yet.</p>}
        </div>
      </div>
      {chosen === undefined || map === undefined ? (
        <div class="empty">
          <p>Choose a conversation.</p>
        </div>
      ) : (
        <Opened key={chosen.id} one={chosen} map={map} changes={changes} />
      )}
      {creating && map !== undefined && <Create map={map} onClose={() => setCreating(false)} />}
    </div>
  );
}

function Line({
  one,
  task,
  selected,
}: {
  readonly one: Conversation;
  readonly task: boolean;
  readonly selected: boolean;
}) {
  const now = useNow(10_000);
  return (
    <div
      role="option"
      tabIndex={-1}
      aria-selected={selected}
      class={`needs-row ${selected ? "selected" : ""}`}
      onClick={() => go(href("talk", one.id))}
      onKeyDown={() => {}}
    >
      <span class={`dot ${one.status === "active" ? "good" : ""}`} />
      <span class="dim num">{ago(Math.max(0, now - one.updatedAt))}</span>
      <span class="cut">
        <b>
          <Text>{one.subject ?? one.id}</Text>
        </b>
        <br />
        <span class="dim">
          {plural(one.participantCount, "member")}
          {task ? " · of a task" : ""} · {one.status}
        </span>
      </span>
    </div>
  );
}

function Opened({
  one,
  map,
  changes,
}: {
  readonly one: Conversation;
  readonly map: MapConnection;
  readonly changes: number;
}) {
  const [turns, setTurns] = useState<readonly ConversationTurn[]>([]);
  const [members, setMembers] = useState<readonly Participant[]>([]);
  const [summary, setSummary] = useState<string | undefined>(undefined);
  const [thread, setThread] = useState<string | undefined>(undefined);
  const [text, setText] = useState("");
  const [audience, setAudience] = useState<readonly string[]>([]);
  /** Another member, as whom the turns are read. */
  const [eyes, setEyes] = useState<string | undefined>(undefined);
  const end = useRef<HTMLDivElement>(null);
  const id = one.id;
  useEffect(() => {
    let current = true;
    const reader =
      eyes === undefined
        ? map
        : new MapConnection(
            () => {},
            () => {},
            eyes,
          );
    reader.ready
      .then(() =>
        reader.call<{ turns: ConversationTurn[] }>("mail/turns/list", { conversationId: id, limit: 500 }),
      )
      .then(
        (page) => {
          if (current) setTurns(page.turns);
        },
        (error: unknown) => {
          if (!current) return;
          toast(error instanceof Error ? error.message : String(error), "bad");
          setEyes(undefined);
        },
      );
    return () => {
      current = false;
      if (reader !== map) reader.close();
    };
  }, [id, changes, eyes]);
  useEffect(() => {
    map
      .call<{ participants?: Participant[] }>("mail/get", {
        conversationId: id,
        include: { participants: true },
      })
      .then(
        ({ participants = [] }) => setMembers(participants),
        () => {},
      );
  }, [id, changes]);
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [turns.length]);
  const say = async () => {
    if (text.trim() === "") return;
    try {
      await map.call("mail/turn", {
        conversationId: id,
        contentType: "text",
        content: { text },
        ...(thread !== undefined && { threadId: thread }),
        ...(audience.length > 0 && { visibility: { type: "participants", ids: audience } }),
      });
      setText("");
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
  };
  const threads = new Map<string, number>();
  for (const { threadId } of turns)
    if (threadId !== undefined) threads.set(threadId, (threads.get(threadId) ?? 0) + 1);
  const shown = thread === undefined ? turns : turns.filter(({ threadId }) => threadId === thread);
  const task = one.metadata.task_id;
  const others = members.filter(({ id: member, leftAt }) => leftAt === undefined && member !== callerName());
  return (
    <div class="task-view">
      <div class="needs-bar talk-bar">
        <a class="phone-only" href={href("talk")} aria-label="All conversations">
          <Icon name="back" />
        </a>
        <b class="cut">
          <Text>{one.subject ?? one.id}</Text>
        </b>
        <span class="cut">
          {one.status} · created by <Text>{one.createdBy}</Text>
        </span>
        <span class="grow" />
        {typeof task === "string" && (
          <a class="link" href={href("tasks", task)}>
            its task
          </a>
        )}
        <button
          type="button"
          class="button small"
          onClick={() =>
            void map.call<{ summary: string }>("mail/summary", { conversationId: id, regenerate: true }).then(
              (answer) => setSummary(answer.summary),
              (error: unknown) => toast(error instanceof Error ? error.message : String(error), "bad"),
            )
          }
        >
          Summarize
        </button>
      </div>
      <Members
        members={members}
        count={one.participantCount}
        onLook={caller.value?.dev === true ? setEyes : undefined}
      />
      <div class="talk-view scroll" tabIndex={0} role="log" aria-label="Turns">
        {summary !== undefined && (
          <Panel title="Summary" note={`of ${plural(turns.length, "turn")}`}>
            <div class="inside">
              <Markdown text={summary} />
            </div>
          </Panel>
        )}
        {eyes !== undefined && (
          <div>
            <button type="button" class="chip on" onClick={() => setEyes(undefined)}>
              as <Text>{eyes}</Text> sees it ×
            </button>
          </div>
        )}
        {thread !== undefined && (
          <button type="button" class="chip on" onClick={() => setThread(undefined)}>
            one thread ×
          </button>
        )}
        {shown.map((turn) => (
          <article class={`bubble ${turn.participant === callerName() ? "mine" : ""}`} key={turn.id}>
            <header>
              <b>
                <Text>{turn.participant}</Text>
              </b>
              <span class="num">{clock(turn.timestamp, false)}</span>
              <VisibleTo turn={turn} />
              {turn.threadId !== undefined && thread === undefined && (
                <button type="button" class="link" onClick={() => setThread(turn.threadId)}>
                  {plural(threads.get(turn.threadId) ?? 1, "turn")} in a thread
                </button>
              )}
            </header>
            <Content turn={turn} />
          </article>
        ))}
        <div ref={end} />
      </div>
      {one.status === "active" && eyes === undefined && (
        <div class="composer">
          <textarea
            class="field"
            rows={2}
            aria-label="Say something"
            placeholder="Say something …"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                void say();
              } else if (event.key === "Escape") event.currentTarget.blur();
            }}
          />
          <div class="row-of">
            {/* Everybody in a task sees all of its mail. */}
            {typeof task !== "string" && others.length > 0 && (
              <Audience members={others} value={audience} onChange={setAudience} />
            )}
            <span class="grow" />
            <button
              type="button"
              class="button main"
              disabled={text.trim() === ""}
              onClick={() => void say()}
            >
              Send <Kbd>Ctrl ⏎</Kbd>
            </button>
          </div>
        </div>
      )}
    </div>
  );
}

function VisibleTo({ turn }: { readonly turn: ConversationTurn }) {
  const names = audienceOf(turn.visibility, turn.participant);
  if (names === undefined) return null;
  return (
    <span class="wait">
      <Icon name="lock" size={12} /> visible to: <Text>{names}</Text>
    </span>
  );
}

function Content({ turn }: { readonly turn: ConversationTurn }) {
  const { content } = turn;
  if (typeof content === "string") return <Markdown text={content} />;
  if (
    typeof content === "object" &&
    content !== null &&
    "text" in content &&
    typeof content.text === "string"
  ) {
    return <Markdown text={content.text} />;
  }
  return <Json value={content} open={1} />;
}

function Create({ map, onClose }: { readonly map: MapConnection; readonly onClose: () => void }) {
  const [subject, setSubject] = useState("");
  const create = async () => {
    try {
      const { conversation } = await map.call<{ conversation: Conversation }>(
        "mail/create",
        subject === "" ? {} : { subject },
      );
      onClose();
      go(href("talk", conversation.id));
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
  };
  return (
    <Dialog title="New conversation" onClose={onClose}>
      <label class="labelled">
        <span>Subject</span>
        <input
          class="field"
          data-first
          value={subject}
          onInput={(event) => setSubject(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") void create();
          }}
        />
      </label>
      <footer>
        <span class="grow" />
        <button type="button" class="button main" onClick={() => void create()}>
          Create
        </button>
      </footer>
    </Dialog>
  );
}
