/** What an agent asks, and the answer to it. Several calls are answered together. */
import { useState } from "preact/hooks";
import { ApiError, caller, callerName, readOnly, request, writeDone, writeKey } from "../../data/api.js";
import type { OpenCall, TaskDigest } from "../../data/shapes.js";
import { plural } from "../../model/words.js";
import type { TaskRef } from "../../nav/dialogs.js";
import { Icon } from "../../ui/icon.js";
import { Command, Kbd, toast } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";

const QUICK = ["yes", "no", "not now"] as const;

function argumentsOf(call: OpenCall): [string, string][] {
  try {
    const value: unknown = JSON.parse(call.arguments);
    if (typeof value !== "object" || value === null) return [["", String(value)]];
    return Object.entries(value).map(([name, each]) => [
      name,
      typeof each === "string" ? each : JSON.stringify(each),
    ]);
  } catch {
    return [["", call.arguments]];
  }
}

export function Call({ call }: { readonly call: OpenCall }) {
  const args = argumentsOf(call);
  return (
    <div class="call">
      <div class="call-name mono">
        <Text>{call.name}</Text>
      </div>
      {args.length > 0 && (
        <dl class="call-args">
          {args.map(([name, value]) => (
            <div key={name}>
              <dt>
                <Text>{name}</Text>
              </dt>
              <dd>
                <Text>{value.length > 4_000 ? `${value.slice(0, 4_000)}…` : value}</Text>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}

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
    open,
    held: null,
    answerers: [callerName()],
  };
}

/** Whether the caller may answer; in development mode the page acts as a caller who may. */
export function answererOf(
  digest: TaskDigest,
  owner: string,
): { readonly may: boolean; readonly as: string } {
  const mine = callerName();
  const others = digest.answerers.length > 0 ? digest.answerers : [owner.replace(/@[^@]*$/, "")];
  if (others.includes(mine)) return { may: true, as: mine };
  return { may: caller.value?.dev === true, as: others[0] ?? owner };
}

interface AnswerProps {
  readonly task: TaskRef;
  readonly digest: TaskDigest;
  readonly onSent?: () => void;
  readonly focus?: boolean;
}

export function Answer({ task, digest, onSent, focus = false }: AnswerProps) {
  const [texts, setTexts] = useState<ReadonlyMap<string, string>>(new Map());
  const [sending, setSending] = useState(false);
  const [sent, setSent] = useState(-1);
  const { may, as } = answererOf(digest, task.owner);
  if (digest.held !== null) return <Held task={task} digest={digest} as={as} may={may} />;
  const calls = digest.open;
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
              {...(focus && call === first && { autoFocus: true })}
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
        <>
          <p>Only {digest.answerers.join(", ") || as} may answer this task. On their machine:</p>
          <Command text={`mailroom client ${location.origin} breakpoint ${task.taskId}`} />
        </>
      )}
    </section>
  );
}

function Held({
  task,
  digest,
  as,
  may,
}: {
  readonly task: TaskRef;
  readonly digest: TaskDigest;
  readonly as: string;
  readonly may: boolean;
}) {
  const [tried, setTried] = useState(false);
  return (
    <section class="ask" aria-label="The task is on hold">
      <h3>
        <Icon name="waits" size={14} />
        <Text>{digest.held?.agent ?? ""}</Text> is on hold
      </h3>
      <p>
        <Text>{digest.held?.message ?? ""}</Text>
      </p>
      {may && (
        <div class="row-of">
          <button
            type="button"
            class="button"
            disabled={tried || readOnly.value !== undefined}
            onClick={() => {
              setTried(true);
              request("message", {
                body: { task_id: task.taskId, resume_from: "user_response", body: "Try again.", wait: false },
                key: writeKey(`retry:${task.key}:${digest.number}`),
                as,
              }).catch((error: unknown) => {
                setTried(false);
                toast(error instanceof Error ? error.message : String(error), "bad");
              });
            }}
          >
            Try again
          </button>
        </div>
      )}
    </section>
  );
}
