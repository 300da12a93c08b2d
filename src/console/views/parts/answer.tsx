/** What an agent asks, and the answer to it. Several calls are answered together. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import {
  ApiError,
  caller,
  callerName,
  isAdmin,
  readOnly,
  request,
  writeDone,
  writeKey,
} from "../../data/api.js";
import type { OpenCall, TaskDigest } from "../../data/shapes.js";
import { plural, principalOf } from "../../model/words.js";
import type { TaskRef } from "../../nav/dialogs.js";
import { Icon } from "../../ui/icon.js";
import { Command, Kbd, toast } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";
import { Call } from "./call.js";
import { Decide } from "./decide.js";
import { Held } from "./held.js";

const QUICK = ["yes", "no", "not now"] as const;

/** What the one who was named for another's task sees of it. */
export function digestOfCalls(key: string, taskId: string, open: readonly OpenCall[]): TaskDigest {
  return {
    task_id: taskId,
    key,
    number: 0,
    messages: 0,
    turns: 0,
    failed_turns: 0,
    actions: 0,
    failed_actions: 0,
    steps: 0,
    max_steps: null,
    tokens: { input: 0, output: 0, cached: 0 },
    cost: null,
    waited_ms: 0,
    agents: [],
    lanes: [],
    open: [...open],
    held: null,
    answerers: [callerName()],
    paused_at: null,
  };
}

/** Whether the caller may answer; in development mode the page acts as a caller who may. */
function answererOf(digest: TaskDigest, owner: string): { readonly may: boolean; readonly as: string } {
  const mine = callerName();
  const others = digest.answerers.length > 0 ? digest.answerers : [principalOf(owner)];
  if (others.includes(mine) || others.includes(caller.value?.role ?? "")) return { may: true, as: mine };
  return { may: caller.value?.dev === true, as: others[0] ?? owner };
}

/** The same, and for admins that the server lets act for owners: it is asked. */
function useAnswerer(task: TaskRef, digest: TaskDigest): { readonly may: boolean; readonly as: string } {
  const known = answererOf(digest, task.owner);
  const [acts, setActs] = useState(false);
  const ask = !known.may && isAdmin();
  useEffect(() => {
    if (!ask) return;
    const stop = new AbortController();
    request(`approvals/${encodeURIComponent(task.key)}`, { signal: stop.signal }).then(
      () => setActs(true),
      () => {},
    );
    return () => stop.abort();
  }, [ask, task.key]);
  return ask && acts ? { may: true, as: callerName() } : known;
}

interface AnswerProps {
  readonly task: TaskRef;
  readonly digest: TaskDigest;
  readonly onSent?: () => void;
}

export function Answer({ task, digest, onSent }: AnswerProps) {
  const { may, as } = useAnswerer(task, digest);
  if (digest.held !== null) return <Held task={task} digest={digest} held={digest.held} as={as} may={may} />;
  const questions = digest.open.filter(({ kind }) => kind !== "approval");
  const decisions = digest.open.filter(({ kind }) => kind === "approval");
  const others = (
    <>
      <p>Only {digest.answerers.join(", ") || as} may answer this task. On their machine:</p>
      <Command
        text={
          questions.length > 0
            ? `mailroom client ${location.origin} breakpoint ${task.taskId}`
            : `mailroom approvals approve ${task.key}`
        }
      />
    </>
  );
  return (
    <>
      {questions.length > 0 && (
        <Questions task={task} digest={digest} calls={questions} may={may} as={as} onSent={onSent}>
          {!may && others}
        </Questions>
      )}
      {decisions.length > 0 && (
        <section class="ask" aria-label={`${decisions[0]?.agent} waits for approval`}>
          <h3>
            <Icon name="waits" size={14} />
            <span>
              <Text>{decisions[0]?.agent ?? ""}</Text> asks {may ? "you" : as} to approve{" "}
              {decisions.length === 1 ? "an action" : plural(decisions.length, "action")}
            </span>
          </h3>
          {decisions.map((call) => (
            <Decide key={call.call_id} task={task} call={call} as={may ? as : undefined} onSent={onSent} />
          ))}
          {!may && others}
        </section>
      )}
    </>
  );
}

interface QuestionsProps {
  readonly task: TaskRef;
  readonly digest: TaskDigest;
  readonly calls: readonly OpenCall[];
  readonly may: boolean;
  readonly as: string;
  readonly onSent: (() => void) | undefined;
  readonly children: ComponentChildren;
}

/** Calls whose results a person supplies. They take effect together. */
function Questions({ task, digest, calls, may, as, onSent, children }: QuestionsProps) {
  const [texts, setTexts] = useState<ReadonlyMap<string, string>>(new Map());
  const [sending, setSending] = useState(false);
  const [sent, setSent] = useState(-1);
  const [first] = calls;
  if (first === undefined) return null;
  if (sent >= digest.number) {
    return (
      <div class="ask sent" role="status">
        Sent. {first.agent} continues.
      </div>
    );
  }
  const filled = calls.every(({ call_id }) => (texts.get(call_id) ?? "").trim() !== "");
  const send = async (quick?: string) => {
    if (sending) return;
    const results = calls.map(({ call_id }) => ({ call_id, content: quick ?? texts.get(call_id) ?? "" }));
    if (quick === undefined && !filled) return;
    setSending(true);
    const what = `answer:${task.key}:${calls.map(({ call_id }) => call_id).join()}`;
    try {
      await request(`approvals/${encodeURIComponent(task.key)}`, {
        body: { results, caller: first.agent },
        key: writeKey(what),
        as,
      });
      writeDone(what);
      setSent(digest.number);
      onSent?.();
    } catch (error) {
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) writeDone(what);
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
    setSending(false);
  };
  return (
    <section class="ask" aria-label={`${first.agent} waits for your answer`}>
      <h3>
        <Icon name="waits" size={14} />
        <Text>{first.agent}</Text> waits for {may ? "your answer" : `an answer of ${as}`}
      </h3>
      {calls.map((call) => (
        <div class="ask-one" key={call.call_id}>
          <Call call={call} />
          {may && (
            <textarea
              class="field"
              rows={calls.length > 1 ? 1 : 2}
              data-answer
              aria-label={`Answer to ${call.name}`}
              placeholder={`Answer as ${as} …`}
              value={texts.get(call.call_id) ?? ""}
              onInput={(event) => setTexts(new Map(texts).set(call.call_id, event.currentTarget.value))}
              onKeyDown={(event) => {
                if (
                  event.key === "Enter" &&
                  (event.ctrlKey || event.metaKey || (!event.shiftKey && calls.length === 1))
                ) {
                  event.preventDefault();
                  void send();
                }
                if (event.key === "Escape") event.currentTarget.blur();
              }}
            />
          )}
        </div>
      ))}
      {may ? (
        <div class="row-of">
          {QUICK.map((word) => (
            <button
              type="button"
              class="button small"
              key={word}
              disabled={sending || readOnly.value !== undefined}
              onClick={() => void send(word)}
            >
              {word}
            </button>
          ))}
          <span class="grow" />
          <button
            type="button"
            class="button main"
            disabled={!filled || sending || readOnly.value !== undefined}
            title={readOnly.value}
            onClick={() => void send()}
          >
            {sending ? "Sending" : calls.length > 1 ? `Send ${plural(calls.length, "answer")}` : "Send"}{" "}
            <Kbd>⏎</Kbd>
          </button>
        </div>
      ) : (
        children
      )}
    </section>
  );
}
