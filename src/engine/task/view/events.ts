/**
 * Converts journal entries to events with the reference's names and payloads (REF-1), so that its clients understand
 * them. A pure function of the entry, so that a stream can resume at any event.
 */

import type { MAILMessage } from "../../../mail/index.js";
import { normalizeBreakpointCall, renderMailXml, SYSTEM_SUBJECTS } from "../../../mail/index.js";
import type { TaskStatus } from "../../ports.js";
import { totalsOf } from "../../usage.js";
import type { ApprovalAnswered, Entry, TurnTaken } from "../entries.js";
import { isErrorSubject } from "../system-messages.js";
import { usageView } from "./usage.js";

export { parseEventId } from "./event-id.js";

/** The data of an event. */
export interface EventData {
  /** ISO 8601, the time of the entry. */
  readonly timestamp: string;
  /** For people. */
  readonly description: string;
  readonly task_id: string;
  /** What depends on the event's name. */
  readonly extra_data: Readonly<Record<string, unknown>>;
  /** On events that end a round: the answer, or the error. */
  readonly response?: string;
  /** On events that change it. */
  readonly status?: TaskStatus;
}

/** What an entry of a journal looks like to a client. */
export interface MailEvent {
  /** `<number>`, or `<number>.<k>` when an entry gives several events. Opaque to clients (decision D3). */
  readonly id: string;
  readonly event: EventName;
  readonly data: EventData;
}

/** The names of events: see `docs/events.md`. */
export const EVENT_NAMES = [
  /** A message was sent to an agent: one event per recipient, with the message in `full_message`. */
  "new_message",
  /** An agent called a tool. */
  "tool_call",
  /** An action starts. */
  "action_call",
  /** An action succeeded. */
  "action_complete",
  /** An action failed. */
  "action_error",
  /** An agent waits for more mail. */
  "await_message",
  /** An agent removed a broadcast from its memory. */
  "broadcast_ignored",
  /** An agent asked for help about its tools. */
  "help_called",
  /** An agent called a breakpoint tool. The task pauses. */
  "breakpoint_tool_call",
  /** A person supplied the result of a breakpoint. */
  "breakpoint_action_complete",
  /** A call waits for approval. */
  "approval_requested",
  /** A call was approved or rejected, or its approval expired. */
  "approval_answered",
  /** An agent completes the task. */
  "task_complete_call",
  /** An agent completed a task that had already ended. Nothing changed. */
  "task_complete_call_duplicate",
  /** A round ended: the task is completed, or paused (`status`). `response` has the answer. */
  "task_complete",
  /** A round ended: the task has failed or was cancelled (`status`). `response` has the reason. */
  "task_error",
  /** A message resumed the task. */
  "task_resumed",
  /** A turn failed, or an agent made a mistake. */
  "agent_error",
  /** A call of an agent's model failed. Another attempt or another model may have succeeded. */
  "model_call_failed",
  /** What the model calls of a turn used: calls, tokens and cost. */
  "model_usage",
  /** Another swarm accepted a message. */
  "interswarm_message_sent",
  /** A message of another swarm arrived. */
  "interswarm_message_received",
  /** A message to another swarm cannot be delivered. */
  "interswarm_message_error",
  /** An event of another swarm that works on the task, copied into it. */
  "interswarm_event",
] as const;
export type EventName = (typeof EVENT_NAMES)[number];

/** Whether a round of the task ends with this event. */
export function endsRound(event: MailEvent): boolean {
  return event.data.status !== undefined && event.data.status !== "running";
}

interface Sketch {
  readonly event: EventName;
  readonly description: string;
  readonly extra?: Readonly<Record<string, unknown>>;
  readonly response?: string;
  readonly status?: TaskStatus;
}

export function eventsOf(taskId: string, number: number, entry: Entry): MailEvent[] {
  const sketches = sketch(entry);
  const timestamp = new Date(entry.at).toISOString();
  return sketches.map(({ event, description, extra = {}, response, status }, index) => ({
    id: sketches.length === 1 ? `${number}` : `${number}.${index}`,
    event,
    data: {
      timestamp,
      description,
      task_id: taskId,
      extra_data: extra,
      ...(response !== undefined && { response }),
      ...(status !== undefined && { status }),
    },
  }));
}

function failedCalls({ agent, usage }: Pick<TurnTaken, "agent" | "usage">): Sketch[] {
  return (usage?.failures ?? []).map(({ model, problem }) => ({
    event: "model_call_failed",
    description: `a call of ${model} for agent ${agent} failed: ${problem}`,
    extra: { agent, model, problem },
  }));
}

/** What the model calls of a turn used. Last among the events of its entry, so that the ids of the others are stable. */
function modelUsage({ agent, usage }: Pick<TurnTaken, "agent" | "usage">): Sketch[] {
  if (usage === undefined) return [];
  const used = usageView(totalsOf(usage));
  const { model, estimated } = usage;
  return [
    {
      event: "model_usage",
      description:
        `agent ${agent} used ${used.calls} model calls, ${used.tokens.input} input and ${used.tokens.output} output tokens` +
        (used.cost === null ? "" : `, cost ${used.cost}`),
      extra: {
        agent,
        ...(model !== undefined && { model }),
        ...used,
        ...(estimated === true && { estimated }),
      },
    },
  ];
}

function sketch(entry: Entry): Sketch[] {
  switch (entry.t) {
    case "sent":
      return sentEvents(entry);
    case "turn":
      return [
        ...failedCalls(entry),
        ...entry.calls.map((call) => toolCall(entry, call)),
        ...modelUsage(entry),
      ];
    case "turn_failed":
      return [
        ...failedCalls(entry),
        {
          event: "agent_error",
          description: `error scheduling message for agent ${entry.agent}: ${entry.message}`,
          extra: { agent: entry.agent, code: entry.code },
        },
        ...modelUsage(entry),
      ];
    case "usage":
      // A call that is about to start is part of the usage of its turn.
      return entry.begun === true ? [] : [...failedCalls(entry), ...modelUsage(entry)];
    case "result":
      return resultEvents(entry);
    case "action_started":
      return [
        {
          event: "action_call",
          description: `agent ${entry.agent} executing action tool: ${entry.name}`,
          extra: {
            caller: entry.agent,
            tool_name: entry.name,
            tool_call_id: entry.call,
            attempt: entry.attempt,
          },
        },
      ];
    case "action_finished":
      return [
        {
          event: entry.ok ? "action_complete" : "action_error",
          description: `action ${entry.ok ? "complete" : "error"} (caller = ${entry.agent}):\n${entry.content}`,
          extra: {
            caller: entry.agent,
            tool_name: entry.name,
            tool_call_id: entry.call,
            status: entry.ok ? "success" : "error",
            result: entry.content,
          },
        },
      ];
    case "approval_asked":
      return [
        {
          event: "approval_requested",
          description: `agent ${entry.agent} needs approval of ${entry.name} with args: ${JSON.stringify(entry.args)}`,
          extra: {
            caller: entry.agent,
            tool_name: entry.name,
            tool_call_id: entry.call,
            tool_args: entry.args,
            ...(entry.expires !== undefined && { expires: new Date(entry.expires).toISOString() }),
          },
        },
      ];
    case "approval_answered":
      return [approvalAnswered(entry)];
    case "paused":
      if (entry.approvals !== undefined) {
        const extra = { caller: entry.agent, approvals: entry.approvals.map(normalizeBreakpointCall) };
        return [{ ...end("task_complete", "paused", entry.message), extra }];
      }
      if (entry.reason !== undefined) {
        const extra = { caller: entry.agent, reason: entry.reason };
        return [
          ...failedCalls(entry),
          ...modelUsage(entry),
          { ...end("task_complete", "paused", entry.message), extra },
        ];
      }
      return [
        {
          event: "breakpoint_tool_call",
          description: `agent ${entry.agent} used breakpoint tools ${entry.calls
            .map((call) => `${call.name} with args: ${JSON.stringify(call.args)}`)
            .join(", ")}`,
          extra: { caller: entry.agent, calls: entry.calls.map(normalizeBreakpointCall) },
        },
        end("task_complete", "paused", entry.message),
      ];
    case "completed":
      return [
        {
          event: "task_complete_call",
          description: `agent ${entry.message.message.sender.address} called task_complete, full response to follow`,
          extra: { caller: entry.message.message.sender.address },
        },
        newMessage(entry.message),
        end("task_complete", "completed", entry.message),
      ];
    case "failed":
      return [
        newMessage(entry.message),
        { ...end("task_error", "failed", entry.message), extra: { code: entry.code } },
      ];
    case "cancelled":
      return [newMessage(entry.message), end("task_error", "cancelled", entry.message)];
    case "resumed":
      return [{ event: "task_resumed", description: "the task continues", status: "running" }];
    case "carried":
      return [
        entry.ok
          ? {
              event: "interswarm_message_sent",
              description: `sent interswarm message to swarm ${entry.swarm}`,
            }
          : {
              event: "interswarm_message_error",
              description: `error sending interswarm message to swarm ${entry.swarm}: ${entry.reason ?? "unknown"}`,
            },
      ].map((event) => ({ ...event, extra: { swarm: entry.swarm, message_id: entry.message } }) as Sketch);
    case "remote_event":
      // A separate name, so that the end of the task in another swarm is not taken for the end of this task.
      return [
        {
          event: "interswarm_event",
          description: `swarm ${entry.swarm}: ${entry.event}`,
          extra: { swarm: entry.swarm, id: entry.id, event: entry.event, data: entry.data },
        },
      ];
    case "opened":
    case "step_limit":
    case "idle":
    case "recovered":
    case "parked":
    case "lent":
    case "released":
    case "contributed":
    case "compacted":
    case "approvers":
    case "budget":
    case "redefined":
      return [];
  }
}

function sentEvents(entry: Extract<Entry, { t: "sent" }>): Sketch[] {
  const { message } = entry;
  const { sender, subject } = message.message;
  // This message only wakes an agent and is not meant for readers.
  if (subject === SYSTEM_SUBJECTS.actionCompleteBroadcast) return [];
  const events: Sketch[] = entry.to.map((recipient) => newMessage(message, recipient));
  if (sender.address_type === "agent" && sender.address.includes("@")) {
    const swarm = sender.address.slice(sender.address.indexOf("@") + 1);
    events.unshift({
      event: "interswarm_message_received",
      description: `received interswarm message from swarm ${swarm}`,
      extra: { swarm, message_id: message.id },
    });
  }
  if (sender.address_type === "system" && isErrorSubject(subject)) {
    events.push({
      event: "agent_error",
      description: message.message.body,
      extra: { agent: entry.to.join(), subject },
    });
  }
  return events;
}

function resultEvents(entry: Extract<Entry, { t: "result" }>): Sketch[] {
  const extra = { caller: entry.agent, tool_call_id: entry.call };
  if (entry.breakpoint === true) {
    return [
      {
        event: "breakpoint_action_complete",
        description: `breakpoint action complete (caller = ${entry.agent}):\n${entry.content}`,
        extra: { ...extra, result: entry.content },
      },
    ];
  }
  if (!entry.ok) return [];
  switch (entry.name) {
    case "await_message":
      return [
        {
          event: "await_message",
          description: `agent '${entry.agent}' is awaiting a new message: ${entry.content}`,
          extra,
        },
      ];
    case "ignore_broadcast":
      return [
        { event: "broadcast_ignored", description: `agent ${entry.agent} called ignore_broadcast`, extra },
      ];
    case "help":
      return [{ event: "help_called", description: `agent ${entry.agent} called help`, extra }];
    case "task_complete":
      return [
        {
          event: "task_complete_call_duplicate",
          description: `agent ${entry.agent} called task_complete, but the task had ended`,
          extra,
        },
      ];
    default:
      return [];
  }
}

function approvalAnswered(entry: ApprovalAnswered): Sketch {
  const { agent, name, call, decision, by, args, reason } = entry;
  const who = by === undefined ? "" : ` by ${by}`;
  return {
    event: "approval_answered",
    description: `the call of ${name} by agent ${agent} was ${decision}${who}`,
    extra: {
      caller: agent,
      tool_name: name,
      tool_call_id: call,
      decision,
      ...(by !== undefined && { by }),
      ...(args !== undefined && { tool_args: args }),
      ...(reason !== undefined && { reason }),
    },
  };
}

function toolCall(entry: TurnTaken, call: TurnTaken["calls"][number]): Sketch {
  return {
    event: "tool_call",
    description: `agent ${entry.agent} called ${call.name}`,
    extra: {
      caller: entry.agent,
      tool_name: call.name,
      tool_args: call.args,
      tool_call_id: call.id,
      ...(entry.reasoning !== undefined && { reasoning: entry.reasoning }),
      ...(entry.text !== undefined && { preamble: entry.text }),
    },
  };
}

function newMessage(message: MAILMessage, recipient?: string): Sketch {
  return {
    event: "new_message",
    description: `sending message:\n${renderMailXml(message)}`,
    extra: { full_message: message, ...(recipient !== undefined && { recipient }) },
  };
}

function end(
  event: "task_complete" | "task_error",
  status: Exclude<TaskStatus, "running">,
  message: MAILMessage,
): Sketch {
  const response = message.message.body;
  return { event, description: `response: '${response}'`, response, status };
}
