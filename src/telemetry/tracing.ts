/**
 * Traces derived from the journal: one trace per task, a span per round, and below it spans per turn and action, by
 * OpenTelemetry's GenAI semantic conventions. Tracing reads only committed entries and does not affect tasks. Without
 * a registered provider it does not subscribe.
 */
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { LRUCache } from "lru-cache";
import type { Entry, TurnTaken } from "../engine/index.js";
import {
  ALL_TASKS_CHANNEL,
  type CommitNotification,
  isCommitNotification,
  outcomeOf,
} from "../engine/index.js";
import type { Bus } from "../journal/index.js";

/** Tasks with open spans; beyond the limit the oldest are ended early. */
const MOST_TASKS = 10_000;

interface TracedTask {
  readonly round: Span;
  readonly context: Context;
  /** Times of sent messages by number: a turn begins with the mail that it takes. */
  readonly sent: Map<number, number>;
  readonly turns: Map<string, Context>;
  readonly actions: Map<string, Span>;
}

/** Returns a function that stops it. */
export function traceTasks(
  bus: Bus,
  swarm: string,
  tracer: Tracer = trace.getTracer("mailroom"),
): () => void {
  if (!isRecording(tracer)) return () => {};
  const tracing = new Tracing(tracer, swarm);
  const subscription = bus.subscribe(ALL_TASKS_CHANNEL, (note) => {
    if (isCommitNotification(note)) tracing.take(note);
  });
  return () => {
    subscription.close();
    tracing.stop();
  };
}

function isRecording(tracer: Tracer): boolean {
  const probe = tracer.startSpan("mailroom start");
  const recording = probe.isRecording();
  probe.end();
  return recording;
}

class Tracing {
  readonly #tracer: Tracer;
  readonly #swarm: string;
  readonly #tasks = new LRUCache<string, TracedTask>({
    max: MOST_TASKS,
    dispose: (task) => endAll(task),
  });

  constructor(tracer: Tracer, swarm: string) {
    this.#tracer = tracer;
    this.#swarm = swarm;
  }

  take({ key, first, entries }: CommitNotification): void {
    for (const [index, entry] of entries.entries()) {
      const task = this.#tasks.get(key) ?? this.#begin(key, entry);
      this.#see(key, task, first + index, entry);
    }
  }

  stop(): void {
    this.#tasks.clear();
  }

  #begin(key: string, entry: Entry): TracedTask {
    const round = this.#tracer.startSpan(
      `task ${this.#swarm}`,
      {
        startTime: entry.at,
        attributes: { "gen_ai.conversation.id": key, "mailroom.swarm": this.#swarm },
      },
      traceOf(key),
    );
    const task: TracedTask = {
      round,
      context: trace.setSpan(ROOT_CONTEXT, round),
      sent: new Map(),
      turns: new Map(),
      actions: new Map(),
    };
    this.#tasks.set(key, task);
    return task;
  }

  #see(key: string, task: TracedTask, number: number, entry: Entry): void {
    switch (entry.t) {
      case "opened":
        task.round.setAttributes({
          "mailroom.task.id": entry.task.taskId,
          "mailroom.task.owner": entry.task.owner,
        });
        return;
      case "sent":
        task.sent.set(number, entry.at);
        return;
      case "turn":
        this.#turn(task, entry, entry.took, (span) => describeTurn(span, entry));
        return;
      case "turn_failed":
        this.#turn(task, entry, entry.took, (span) => {
          describeUsage(span, entry.usage);
          span.setAttribute("error.type", entry.code);
          span.setStatus({ code: SpanStatusCode.ERROR, message: entry.message });
        });
        return;
      case "action_started":
        this.#startAction(task, entry);
        return;
      case "action_finished": {
        const span = task.actions.get(entry.call);
        if (!entry.ok) span?.setStatus({ code: SpanStatusCode.ERROR });
        span?.end(entry.at);
        task.actions.delete(entry.call);
        return;
      }
      default: {
        const outcome = outcomeOf(entry);
        if (outcome === undefined) return;
        task.round.setAttribute("mailroom.task.status", outcome.status);
        if (outcome.error !== undefined) {
          task.round.setAttribute("error.type", outcome.error.code);
          task.round.setStatus({ code: SpanStatusCode.ERROR, message: outcome.error.message });
        }
        task.round.end(entry.at);
        this.#tasks.delete(key);
      }
    }
  }

  #turn(
    task: TracedTask,
    { agent, at }: { readonly agent: string; readonly at: number },
    took: readonly number[],
    describe: (span: Span) => void,
  ): void {
    const begins = took.flatMap((number) => task.sent.get(number) ?? []);
    for (const number of took) task.sent.delete(number);
    const span = this.#tracer.startSpan(
      `invoke_agent ${agent}`,
      {
        startTime: begins.length === 0 ? at : Math.max(...begins),
        attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent },
      },
      task.context,
    );
    describe(span);
    task.turns.set(agent, trace.setSpan(task.context, span));
    span.end(at);
  }

  #startAction(task: TracedTask, entry: Extract<Entry, { t: "action_started" }>): void {
    task.actions.get(entry.call)?.end(entry.at);
    const span = this.#tracer.startSpan(
      `execute_tool ${entry.name}`,
      {
        startTime: entry.at,
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": entry.name,
          "gen_ai.tool.type": "function",
          "gen_ai.tool.call.id": entry.call,
          "gen_ai.agent.name": entry.agent,
        },
      },
      task.turns.get(entry.agent) ?? task.context,
    );
    task.actions.set(entry.call, span);
  }
}

function describeTurn(span: Span, { usage, calls }: TurnTaken): void {
  span.setAttribute(
    "mailroom.turn.calls",
    calls.map(({ name }) => name),
  );
  describeUsage(span, usage);
}

function describeUsage(span: Span, usage: TurnTaken["usage"]): void {
  if (usage?.model !== undefined) span.setAttribute("gen_ai.response.model", usage.model);
  if (usage?.inputTokens !== undefined) span.setAttribute("gen_ai.usage.input_tokens", usage.inputTokens);
  if (usage?.outputTokens !== undefined) span.setAttribute("gen_ai.usage.output_tokens", usage.outputTokens);
}

function endAll(task: TracedTask): void {
  for (const span of task.actions.values()) span.end();
  if (task.round.isRecording()) task.round.end();
}

/** Task keys and trace ids are both UUIDs, so one identifies the other, also after a restart. */
function traceOf(key: string): Context {
  const traceId = key.replaceAll("-", "");
  if (!/^[0-9a-f]{32}$/.test(traceId)) return ROOT_CONTEXT;
  const spanId = traceId.slice(16);
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  });
}
