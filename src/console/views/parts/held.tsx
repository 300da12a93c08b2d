/** An agent that lacks something: what it is, and what the caller can do about it. */
import { useState } from "preact/hooks";
import { ApiError, isAdmin, readOnly, request, writeDone, writeKey } from "../../data/api.js";
import type { TaskDigest } from "../../data/shapes.js";
import { principalOf } from "../../model/words.js";
import type { TaskRef } from "../../nav/dialogs.js";
import { Icon } from "../../ui/icon.js";
import { Kbd, toast } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";

type Hold = NonNullable<TaskDigest["held"]>;
type Limit = NonNullable<Hold["limit"]>;

interface HeldProps {
  readonly task: TaskRef;
  readonly digest: TaskDigest;
  readonly held: Hold;
  readonly as: string;
  readonly may: boolean;
}

/** What is wrong, after the agent's name. */
export function heldWords({ limit }: Hold): string {
  return limit === undefined ? "is on hold" : "reached a limit";
}

export function Held({ task, digest, held, as, may }: HeldProps) {
  const { limit } = held;
  return (
    <section class="ask" aria-label="The task is on hold">
      <h3>
        <Icon name="waits" size={14} />
        <span>
          <Text>{held.agent}</Text> {heldWords(held)}
        </span>
      </h3>
      <p>
        <Text>{held.message}</Text>
      </p>
      {limit === undefined ? (
        may && <TryAgain task={task} digest={digest} as={as} />
      ) : (limit.scope === "owner" ? may : isAdmin()) ? (
        <Raise key={digest.number} task={task} digest={digest} agent={held.agent} limit={limit} as={as} />
      ) : (
        <p class="dim">
          {limit.scope === "owner"
            ? `Only ${principalOf(task.owner)} can raise it.`
            : "Only an admin can raise it."}
        </p>
      )}
    </section>
  );
}

const UNITS: Readonly<Record<Limit["name"], string>> = {
  max_cost: "US dollars",
  max_tokens: "tokens",
  max_calls: "model calls",
};

/** Twice the limit, and more than was used. */
function proposal({ scope, name, value }: Limit, digest: TaskDigest): number {
  const ofTask = scope === "owner" || scope === "task";
  const { input, output } = digest.tokens;
  const used = !ofTask
    ? 0
    : name === "max_cost"
      ? (digest.cost ?? 0)
      : name === "max_tokens"
        ? input + output
        : 0;
  const most = 2 * Math.max(value, used);
  if (most === 0) return { max_cost: 1, max_tokens: 100_000, max_calls: 10 }[name];
  return name === "max_cost" ? Number(most.toPrecision(2)) : Math.ceil(most);
}

/** The route that sets a limit, and its body. */
function changeOf(task: TaskRef, agent: string, { scope, name }: Limit, value: number | null) {
  const budget = { [name]: value };
  switch (scope) {
    case "owner":
      return { path: `tasks/${encodeURIComponent(task.taskId)}/budget`, body: { budget } };
    case "task":
      return { path: `admin/tasks/${encodeURIComponent(task.key)}/budget`, body: { budget } };
    case "agent":
      return {
        path: `admin/tasks/${encodeURIComponent(task.key)}/budget`,
        body: { agents: { [agent]: budget } },
      };
    case "caller":
    case "caller_total": {
      const path = `admin/budgets/callers/${encodeURIComponent(principalOf(task.owner))}`;
      return { path: scope === "caller" ? path : `${path}/total`, body: { budget } };
    }
    case "day":
      return { path: "admin/budgets/day", body: { budget } };
  }
}

interface RaiseProps {
  readonly task: TaskRef;
  readonly digest: TaskDigest;
  readonly agent: string;
  readonly limit: Limit;
  readonly as: string;
}

function Raise({ task, digest, agent, limit, as }: RaiseProps) {
  const [text, setText] = useState(() => String(proposal(limit, digest)));
  const [state, setState] = useState<"ask" | "sending" | "sent">("ask");
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const off = state === "sending" || readOnly.value !== undefined;
  const set = async (value: number | null) => {
    if (off) return;
    if (value !== null && !(value > limit.value)) {
      setProblem(`The new limit must be a number above ${limit.value}.`);
      return;
    }
    setState("sending");
    setProblem(undefined);
    const { path, body } = changeOf(task, agent, limit, value);
    const what = `raise:${task.key}:${digest.number}:${JSON.stringify(body)}`;
    try {
      const answer = await request<{ readonly status?: string }>(path, {
        body,
        key: writeKey(what),
        ...(limit.scope === "owner" && { as }),
      });
      writeDone(what);
      setState("sent");
      if (answer.status === "paused")
        setProblem("The limit is set, but the task still waits: a limit is reached.");
    } catch (error) {
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) writeDone(what);
      setProblem(error instanceof Error ? error.message : String(error));
      setState("ask");
    }
  };
  const raise = () => void set(text.trim() === "" ? Number.NaN : Number(text));
  return (
    <>
      {state === "sent" && problem === undefined ? (
        <p class="good" role="status">
          The limit is set. The task continues.
        </p>
      ) : (
        <>
          <label class="raise">
            New limit
            <input
              class="field num"
              type="number"
              min={0}
              step="any"
              data-answer
              aria-invalid={problem !== undefined}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter") raise();
                else if (event.key === "Escape") event.currentTarget.blur();
                else return;
                event.preventDefault();
              }}
            />
            {UNITS[limit.name]}
          </label>
          {problem !== undefined && (
            <p class="bad" role="alert">
              <Text>{problem}</Text>
            </p>
          )}
          <div class="row-of">
            <button type="button" class="button" disabled={off} onClick={() => void set(null)}>
              Remove the limit
            </button>
            <span class="grow" />
            <button type="button" class="button main" disabled={off} title={readOnly.value} onClick={raise}>
              {state === "sending" ? "Sending" : "Raise the limit"} <Kbd>⏎</Kbd>
            </button>
          </div>
        </>
      )}
    </>
  );
}

function TryAgain({ task, digest, as }: Pick<HeldProps, "task" | "digest" | "as">) {
  const [tried, setTried] = useState(false);
  return (
    <div class="row-of">
      <button
        type="button"
        class="button"
        data-answer
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
  );
}
