import {
  type Context,
  INVALID_SPAN_CONTEXT,
  type Span,
  type SpanOptions,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { afterEach, describe, expect, it } from "vitest";
import { defineAction } from "../actions/define.js";
import { Mailroom } from "../library/mailroom.js";
import { defineAgent } from "../swarm/agent.js";
import { defineSwarm } from "../swarm/define.js";
import { traceTasks } from "./tracing.js";

interface Recorded {
  readonly name: string;
  readonly parent: string | undefined;
  readonly traceId: string | undefined;
  readonly spanId: string;
  readonly attributes: Record<string, unknown>;
  readonly start: unknown;
  end?: unknown;
  status?: unknown;
}

/** A minimal tracer that records its calls. */
function recorder(): { readonly tracer: Tracer; readonly spans: Recorded[] } {
  const spans: Recorded[] = [];
  const startSpan = (name: string, options: SpanOptions = {}, context?: Context): Span => {
    const parent = context === undefined ? undefined : trace.getSpanContext(context);
    const record: Recorded = {
      name,
      parent: parent?.spanId,
      traceId: parent?.traceId,
      spanId: `span-${spans.length}`,
      attributes: { ...options.attributes },
      start: options.startTime,
    };
    spans.push(record);
    const span: Span = {
      spanContext: () => ({ ...INVALID_SPAN_CONTEXT, traceId: record.traceId ?? "", spanId: record.spanId }),
      setAttribute(key, value) {
        record.attributes[key] = value;
        return span;
      },
      setAttributes(attributes) {
        Object.assign(record.attributes, attributes);
        return span;
      },
      addEvent: () => span,
      addLink: () => span,
      addLinks: () => span,
      setStatus(status) {
        record.status = status;
        return span;
      },
      updateName: () => span,
      end(at) {
        record.end = at;
      },
      isRecording: () => record.end === undefined,
      recordException: () => {},
    };
    return span;
  };
  const tracer: Tracer = {
    startSpan,
    startActiveSpan: () => {
      throw new Error("not used");
    },
  };
  return { tracer, spans };
}

const look = defineAction({
  name: "look",
  description: "Looks.",
  parameters: { type: "object" },
  run: () => "sunny",
});

const swarm = defineSwarm({
  name: "desk",
  agents: [
    defineAgent({
      name: "clerk",
      enableEntrypoint: true,
      canCompleteTasks: true,
      actions: [look],
      run(mail) {
        if (mail.body.includes("fail")) throw new Error("broken");
        if (mail.result === undefined) mail.act(look, {});
        else mail.complete(mail.result.content);
      },
    }),
  ],
});

let mailroom: Mailroom | undefined;
afterEach(() => mailroom?.close());

describe("traces", () => {
  it("traces have one trace per task, with spans per turn and action by the GenAI conventions", async () => {
    mailroom = await Mailroom.open({ swarm, data: false });
    const { tracer, spans } = recorder();
    const stop = traceTasks(mailroom.bus, "desk", tracer);
    const posted = await mailroom.user("ann").post("look");
    await posted.outcome;
    stop();
    const [, round, first, action, second] = spans;
    expect(spans).toHaveLength(5);
    const traceId = posted.key.replaceAll("-", "");
    expect(new Set(spans.slice(1).map((span) => span.traceId))).toEqual(new Set([traceId]));
    expect(round).toMatchObject({
      name: "task desk",
      attributes: { "gen_ai.conversation.id": posted.key, "mailroom.task.status": "completed" },
    });
    expect(first).toMatchObject({
      name: "invoke_agent clerk",
      parent: round?.spanId,
      attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk" },
    });
    expect(action).toMatchObject({
      name: "execute_tool look",
      parent: first?.spanId,
      attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look" },
    });
    expect(second).toMatchObject({ name: "invoke_agent clerk", parent: round?.spanId });
    for (const span of spans.slice(1)) expect(span.end, span.name).toBeDefined();
  });

  it("traces show failures", async () => {
    mailroom = await Mailroom.open({ swarm, data: false, onProblem: () => {} });
    const { tracer, spans } = recorder();
    traceTasks(mailroom.bus, "desk", tracer);
    await mailroom.user("ann").ask("fail");
    const failed = spans.filter(({ status }) => status !== undefined).map(({ name }) => name);
    expect(failed).toEqual(["task desk", "invoke_agent clerk"]);
  });

  it("tracing without a recorder has no cost", async () => {
    mailroom = await Mailroom.open({ swarm, data: false });
    let subscribed = 0;
    const bus = {
      ...mailroom.bus,
      subscribe: () => {
        subscribed++;
        return { ready: Promise.resolve(), close: () => {} };
      },
    };
    traceTasks(bus, "desk");
    expect(subscribed).toBe(0);
  });
});
