/** The task as its owner sees it: what was asked and answered large, what agents wrote to each other folded between. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, caller, callerName, readOnly, request, writeDone, writeKey } from "../../data/api.js";
import { digestVersion, wantDigest } from "../../data/digest.js";
import type { OpenTask } from "../../data/journal.js";
import type { JournalEntry } from "../../model/journal-entry.js";
import { recipientsText, senderText } from "../../model/mail-words.js";
import { clock, duration, money, plural, principalOf } from "../../model/words.js";
import { dialog, type TaskRef } from "../../nav/dialogs.js";
import { Kbd, toast } from "../../ui/kit.js";
import { Markdown, Text } from "../../ui/text.js";
import { Answer } from "../parts/answer.js";

interface Said {
  readonly n: number;
  readonly at: number;
  readonly from: string;
  readonly to: string;
  readonly body: string;
  readonly mine: boolean;
  readonly tone: string;
}

type Part =
  | { readonly kind: "said"; readonly said: Said }
  | { readonly kind: "between"; readonly said: Said[]; readonly ms: number; readonly cost: number };

function partsOf(entries: readonly JournalEntry[]): Part[] {
  const parts: Part[] = [];
  let between: Said[] = [];
  let cost = 0;
  let from = 0;
  const flush = (at: number) => {
    if (between.length > 0) parts.push({ kind: "between", said: between, ms: at - from, cost });
    between = [];
    cost = 0;
  };
  for (const entry of entries) {
    if (entry.t === "turn") cost += entry.usage?.cost ?? 0;
    let said: Said | undefined;
    let large = false;
    if (entry.t === "sent") {
      const { sender, body } = entry.message.message;
      if (sender.address_type === "system") continue;
      large = sender.address_type !== "agent";
      said = {
        n: entry.n,
        at: entry.at,
        from: senderText(entry.message),
        to: recipientsText(entry.message),
        body,
        mine: large,
        tone: "",
      };
    } else if (entry.t === "completed") {
      large = true;
      said = {
        n: entry.n,
        at: entry.at,
        from: entry.call?.agent ?? "system",
        to: "",
        body: entry.message.message.body,
        mine: false,
        tone: "good",
      };
    } else if (entry.t === "failed") {
      large = true;
      said = {
        n: entry.n,
        at: entry.at,
        from: "failed",
        to: "",
        body: entry.reason,
        mine: false,
        tone: "bad",
      };
    } else if (entry.t === "result" && entry.breakpoint === true) {
      large = true;
      said = {
        n: entry.n,
        at: entry.at,
        from: "Answer",
        to: entry.agent,
        body: entry.content,
        mine: true,
        tone: "",
      };
    }
    if (said === undefined) continue;
    if (large) {
      flush(entry.at);
      parts.push({ kind: "said", said });
      from = entry.at;
    } else between.push(said);
  }
  flush(entries.at(-1)?.at ?? 0);
  return parts;
}

export function TalkOfTask({ task }: { readonly task: OpenTask }) {
  const version = task.version.value;
  const parts = useMemo(() => partsOf(task.entries), [version]);
  const box = useRef<HTMLDivElement>(null);
  const writing = task.writing.value;
  const written = writing.reduce((sum, { text }) => sum + text.length, 0);
  /** Whether the reader is at the end: somebody who scrolled up stays there. */
  const atEnd = useRef(true);
  useEffect(() => {
    if (box.current !== null && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [version, written]);
  void digestVersion.value;
  const head = task.head.value;
  const digest =
    head !== undefined && task.status.value === "paused"
      ? wantDigest(head.key, head.taskId, task.last)
      : undefined;
  return (
    <>
      <div
        class="talk-view scroll"
        ref={box}
        tabIndex={0}
        role="log"
        aria-label="Conversation"
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          atEnd.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {parts.map((part, index) =>
          part.kind === "said" ? (
            <Bubble said={part.said} key={part.said.n} />
          ) : (
            <Between part={part} key={`b${index}`} />
          ),
        )}
        {writing.map(({ agent, tool, text }, index) => (
          <article class="bubble" key={`w${index}`} aria-live="off">
            <header>
              <b>
                <Text>{agent}</Text>
              </b>
              <span class="pulse">{tool === "task_complete" ? "answers" : "writes"}</span>
            </header>
            <Markdown text={text} />
          </article>
        ))}
        {head !== undefined && digest !== undefined && <Answer task={head} digest={digest} />}
      </div>
      {head !== undefined && !task.removed.value && <Composer task={head} />}
    </>
  );
}

function Bubble({ said }: { readonly said: Said }) {
  return (
    <article class={`bubble ${said.mine ? "mine" : ""}`}>
      <header>
        <b class={said.tone}>
          <Text>{said.from}</Text>
        </b>
        {said.to !== "" && (
          <span>
            to <Text>{said.to}</Text>
          </span>
        )}
        <span class="num">
          {clock(said.at, false)} · #{said.n}
        </span>
      </header>
      <Markdown text={said.body} />
    </article>
  );
}

function Between({ part }: { readonly part: Extract<Part, { kind: "between" }> }) {
  const [open, setOpen] = useState(false);
  const names = [...new Set(part.said.map(({ from }) => from))];
  return (
    <>
      <button type="button" class="folded" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "▾" : "▸"} <Text>{names.slice(0, 4).join(", ")}</Text>: {plural(part.said.length, "message")},{" "}
        {duration(part.ms)}
        {part.cost > 0 ? `, ${money(part.cost)}` : ""}
      </button>
      {open && (
        <div class="folded-in">
          {part.said.map((said) => (
            <Bubble said={said} key={said.n} />
          ))}
        </div>
      )}
    </>
  );
}

function Composer({ task }: { readonly task: TaskRef }) {
  const { key: taskKey, taskId } = task;
  const owner = principalOf(task.owner);
  const draft = `mailroom.draft:${taskKey}`;
  const [text, setText] = useState(sessionStorage.getItem(draft) ?? "");
  const [busy, setBusy] = useState(false);
  // The dialog has the same draft.
  const inDialog = dialog.value?.kind === "message";
  useEffect(() => {
    if (!inDialog) setText(sessionStorage.getItem(draft) ?? "");
  }, [inDialog]);
  const foreign = owner !== callerName();
  if (foreign && caller.value?.dev !== true) {
    return (
      <div class="composer dim">
        Only <Text>{owner}</Text> may write to this task.
      </div>
    );
  }
  const keep = (next: string) => {
    setText(next);
    if (next === "") sessionStorage.removeItem(draft);
    else sessionStorage.setItem(draft, next);
  };
  const send = async () => {
    if (text.trim() === "" || busy) return;
    setBusy(true);
    const what = `message:${taskKey}`;
    try {
      await request("message", {
        key: writeKey(what),
        as: foreign ? owner : undefined,
        body: { body: text, task_id: taskId, resume_from: "user_response", wait: false },
      });
      writeDone(what);
      keep("");
    } catch (error) {
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) writeDone(what);
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
    setBusy(false);
  };
  return (
    <div class="composer">
      <textarea
        class="field"
        rows={2}
        aria-label="Message"
        placeholder={`Write as ${owner} …`}
        value={text}
        onInput={(event) => keep(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void send();
          } else if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      <div class="row-of">
        <button
          type="button"
          class="button quiet"
          title="Type, agent and step limit"
          onClick={() => (dialog.value = { kind: "message", task, more: true })}
        >
          More
        </button>
        <span class="dim">{readOnly.value ?? ""}</span>
        <span class="grow" />
        <button
          type="button"
          class="button main"
          disabled={busy || text.trim() === "" || readOnly.value !== undefined}
          onClick={() => void send()}
        >
          Send <Kbd>Ctrl ⏎</Kbd>
        </button>
      </div>
    </div>
  );
}
