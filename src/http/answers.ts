/** What became of a message, in the words of `POST /message` (decisions D1). */
import type { Clock } from "../engine/ports.js";
import { type Outcome, RuntimeError } from "../engine/runtime/index.js";
import type { MailEvent } from "../engine/view/events.js";
import { normaliseBreakpointCall } from "../mail/calls.js";
import type { Answer } from "./route.js";
import type { MessageAnswer } from "./schemas/message.js";

/** Where a task's events can be read and a stream be taken up again. */
export function eventsUrl(taskId: string): string {
  return `/tasks/${encodeURIComponent(taskId)}/events`;
}

export function endedAnswer(taskId: string, outcome: Outcome, events: MailEvent[] | null): Answer {
  const body: MessageAnswer = {
    response: outcome.message.message.body,
    events,
    task_id: taskId,
    status: outcome.status,
    ...(outcome.error !== undefined && { error: outcome.error }),
    ...(outcome.reason !== undefined && { reason: outcome.reason }),
    ...(outcome.breakpoints !== undefined && {
      breakpoint: outcome.breakpoints.map(normaliseBreakpointCall),
    }),
  };
  return { status: 200, body };
}

export function runningAnswer(taskId: string, events: MailEvent[] | null): Answer {
  const body: MessageAnswer = { response: null, events, task_id: taskId, status: "running" };
  return { status: 202, body, headers: { location: eventsUrl(taskId) } };
}

/** Calls back when there is no point in waiting any more; the returned function takes the callback away. */
export type GiveUpWhen = (giveUp: () => void) => () => void;

/** The outcome, or nothing if the time is up, the server closes or nobody is there to be told any more. */
export function waitFor(
  outcome: Promise<Outcome>,
  options: { readonly clock: Clock; readonly ms: number; readonly giveUpWhen: readonly GiveUpWhen[] },
): Promise<Outcome | undefined> {
  return new Promise((resolve, reject) => {
    const forget: (() => void)[] = [];
    const finish = (settle: () => void) => {
      for (const stop of forget) stop();
      settle();
    };
    const giveUp = () => finish(() => resolve(undefined));
    outcome.then(
      (ended) => finish(() => resolve(ended)),
      (error: unknown) => {
        // The task is durable and goes on when the server is there again.
        if (error instanceof RuntimeError && error.code === "closed") giveUp();
        else finish(() => reject(error));
      },
    );
    forget.push(options.clock.after(options.ms, giveUp));
    for (const when of options.giveUpWhen) forget.push(when(giveUp));
  });
}
