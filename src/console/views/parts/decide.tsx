/** A call that runs only after a person approved it: approve it, change its arguments, or reject it. */
import { useState } from "preact/hooks";
import { ApiError, readOnly, request, writeDone, writeKey } from "../../data/api.js";
import type { OpenCall } from "../../data/shapes.js";
import { dateAndTime } from "../../model/words.js";
import type { TaskRef } from "../../nav/dialogs.js";
import { Kbd } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";
import { Call } from "./call.js";

type Mode = "ask" | "edit" | "reject" | "sending" | "approved" | "rejected";

interface DecideProps {
  readonly task: TaskRef;
  readonly call: OpenCall;
  /** Who the page acts as; undefined if the caller may not decide. */
  readonly as: string | undefined;
  readonly onSent: (() => void) | undefined;
}

export function Decide({ task, call, as, onSent }: DecideProps) {
  const [mode, setMode] = useState<Mode>("ask");
  const [text, setText] = useState(() => pretty(call.arguments));
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const off = mode === "sending" || readOnly.value !== undefined;
  const decide = async (decision: "approve" | "reject", more: Readonly<Record<string, unknown>> = {}) => {
    if (off) return;
    const back = mode;
    setMode("sending");
    setProblem(undefined);
    const body = { decisions: [{ call_id: call.call_id, decision, ...more }] };
    const what = `decide:${task.key}:${call.call_id}:${JSON.stringify(body)}`;
    try {
      await request(`approvals/${encodeURIComponent(task.key)}`, { body, key: writeKey(what), as });
      writeDone(what);
      setMode(decision === "approve" ? "approved" : "rejected");
      onSent?.();
    } catch (error) {
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) writeDone(what);
      setProblem(error instanceof Error ? error.message : String(error));
      setMode(back);
    }
  };
  const approveEdited = () => {
    const read = readArguments(text);
    if (read.args === undefined) setProblem(read.problem);
    else void decide("approve", pretty(call.arguments) === text ? {} : { arguments: read.args });
  };
  const reject = () => void decide("reject", reason.trim() === "" ? {} : { reason: reason.trim() });
  if (mode === "approved" || mode === "rejected") {
    return (
      <p class={mode === "approved" ? "good" : "dim"} role="status">
        {mode === "approved" ? "Approved" : "Rejected"}: <Text>{call.name}</Text>
      </p>
    );
  }
  const back = () => {
    setMode("ask");
    setProblem(undefined);
  };
  return (
    <div class="ask-one">
      {mode !== "edit" && <Call call={call} />}
      {call.expires !== undefined && (
        <p class="dim">Counts as rejected after {dateAndTime(Date.parse(call.expires))}.</p>
      )}
      {as !== undefined && mode === "edit" && (
        <>
          <div class="call-name mono">
            <Text>{call.name}</Text>
          </div>
          <textarea
            class="field mono"
            rows={Math.min(16, text.split("\n").length + 1)}
            ref={focus}
            spellcheck={false}
            aria-label={`Arguments of ${call.name}`}
            aria-invalid={problem !== undefined}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) approveEdited();
              else if (event.key === "Escape") back();
              else return;
              event.preventDefault();
              event.stopPropagation();
            }}
          />
        </>
      )}
      {as !== undefined && mode === "reject" && (
        <input
          class="field"
          ref={focus}
          aria-label={`Why ${call.name} is rejected`}
          placeholder="Why not? The agent reads it."
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") reject();
            else if (event.key === "Escape") back();
            else return;
            event.preventDefault();
            event.stopPropagation();
          }}
        />
      )}
      {problem !== undefined && (
        <p class="bad" role="alert">
          <Text>{problem}</Text>
        </p>
      )}
      {as !== undefined && (
        <div class="row-of">
          {mode === "edit" ? (
            <>
              <button type="button" class="button" onClick={back}>
                Back
              </button>
              <span class="grow" />
              <button type="button" class="button main" disabled={off} onClick={approveEdited}>
                Approve with changes <Kbd>Ctrl ⏎</Kbd>
              </button>
            </>
          ) : mode === "reject" ? (
            <>
              <button type="button" class="button" onClick={back}>
                Back
              </button>
              <span class="grow" />
              <button type="button" class="button danger" disabled={off} onClick={reject}>
                Reject <Kbd>⏎</Kbd>
              </button>
            </>
          ) : (
            <>
              <button
                type="button"
                class="button main"
                data-answer
                disabled={off}
                title={readOnly.value}
                onClick={() => void decide("approve")}
              >
                {mode === "sending" ? "Sending" : "Approve"}
              </button>
              <button type="button" class="button" disabled={off} onClick={() => setMode("edit")}>
                Edit
              </button>
              <span class="grow" />
              <button type="button" class="button danger" disabled={off} onClick={() => setMode("reject")}>
                Reject
              </button>
            </>
          )}
        </div>
      )}
    </div>
  );
}

/** Browsers follow `autofocus` only while a document loads. */
function focus(field: HTMLElement | null): void {
  field?.focus();
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

/** The server checks them against the action's parameters; here only that they are an object. */
function readArguments(
  text: string,
): { readonly args: object } | { readonly args?: undefined; readonly problem: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { args: value };
    return { problem: 'The arguments must be a JSON object, such as {"name": "value"}.' };
  } catch (error) {
    return { problem: `This is not valid JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
