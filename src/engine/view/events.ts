/**
 * The journal as events: the names and payloads of the reference implementation (mail.md 3.14), so that its clients
 * understand ours. A pure function of the entry, which is why a stream can be taken up anywhere.
 */
import { normaliseBreakpointCall } from "../../mail/calls.js";
import type { MAILMessage } from "../../mail/message.js";
import { renderMailXml } from "../../mail/render.js";
import { SYSTEM_SUBJECTS } from "../../mail/subjects.js";
import type { Entry, TurnTaken } from "../entries.js";
import type { TaskStatus } from "../ports.js";
import { isErrorSubject } from "../system-messages.js";

export { parseEventId } from "./event-id.js";

export interface EventData {
  readonly timestamp: string;
  readonly description: string;
  readonly task_id: string;
  readonly extra_data: Readonly<Record<string, unknown>>;
  /** On events that end a round: the answer, or what went wrong. */
  readonly response?: string;
  readonly status?: TaskStatus;
}

export interface MailEvent {
  /** `<number>`, or `<number>.<k>` when an entry gives several events. Opaque to clients (decisions D3). */
  readonly id: string;
  readonly event: EventName;
  readonly data: EventData;
}

export const EVENT_NAMES = [
  "new_message",
  "tool_call",
  "action_call",
  "action_complete",
  "action_error",
  "await_message",
  "broadcast_ignored",
  "help_called",
  "breakpoint_tool_call",
  "breakpoint_action_complete",
  "task_complete_call",
  "task_complete_call_duplicate",
  "task_complete",
  "task_error",
  "task_resumed",
  "agent_error",
  "interswarm_message_sent",
  "interswarm_message_received",
  "interswarm_message_error",
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

function sketch(entry: Entry): Sketch[] {
  switch (entry.t) {
    case "sent":
      return sentEvents(entry);
    case "turn":
      return entry.calls.map((call) => toolCall(entry, call));
    case "turn_failed":
      return [
        {
          event: "agent_error",
          description: `error scheduling message for agent ${entry.agent}: ${entry.message}`,
          extra: { agent: entry.agent, code: entry.code },
        },
      ];
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
    case "paused":
      if (entry.reason !== undefined) {
        const extra = { caller: entry.agent, reason: entry.reason };
        return [{ ...end("task_complete", "paused", entry.message), extra }];
      }
      return [
        {
          event: "breakpoint_tool_call",
          description: `agent ${entry.agent} used breakpoint tools ${entry.calls
            .map((call) => `${call.name} with args: ${JSON.stringify(call.args)}`)
            .join(", ")}`,
          extra: { caller: entry.agent, calls: entry.calls.map(normaliseBreakpointCall) },
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
      return [{ event: "task_resumed", description: "the task goes on", status: "running" }];
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
      // Under a name of its own: what ends a task elsewhere must not look as if it ended this one.
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
    case "redefined":
      return [];
  }
}

function sentEvents(entry: Extract<Entry, { t: "sent" }>): Sketch[] {
  const { message } = entry;
  const { sender, subject } = message.message;
  // This one only wakes an agent; nobody is meant to read it.
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
