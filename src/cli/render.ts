/** Renders a task's events as lines: messages, actions and the outcome. */
import type { TaskEvent } from "../client/index.js";
import { SYSTEM_SUBJECTS } from "../mail/index.js";
import { type Colors, escapeControlCharacters } from "./terminal.js";

export interface RenderOptions {
  readonly colors: Colors;
  readonly columns: number;
  /** Show full texts and the events that are otherwise hidden. */
  readonly verbose?: boolean;
}

/** Renders events in order; keeps the state it needs of earlier ones. */
export type Renderer = (event: TaskEvent) => string[];

/** Calls that are visible through their effects. */
const SHOWN_OTHERWISE: ReadonlySet<string> = new Set([
  "send_request",
  "send_response",
  "send_interrupt",
  "send_broadcast",
  "send_interswarm_broadcast",
  "task_complete",
  "await_message",
  "ignore_broadcast",
  "help",
]);

export function createRenderer(options: RenderOptions): Renderer {
  const { colors, columns, verbose = false } = options;
  const { dim, cyan, yellow, red, green, bold } = colors;
  const argumentsOf = new Map<string, string>();
  /** By swarm: mail to other swarms that is not delivered yet; only the call that sent it shows it. */
  const leaving = new Map<string, string[][]>();
  let lastMessage: string | undefined;

  return (event) => {
    const { data } = event;
    const extra = data.extra_data;
    switch (event.event) {
      case "new_message":
        return message(extra);
      case "tool_call":
        return toolCall(extra);
      case "action_call":
        return [`  ${cyan(textOf(extra.caller))} ${dim("does")} ${actionText(extra)}`];
      case "action_complete":
      case "action_error":
        return actionEnd(event);
      case "breakpoint_tool_call":
        return breakpoint(data.extra_data, data.description);
      case "breakpoint_action_complete":
        return [`  ${dim("answered:")} ${shorten(textOf(extra.result), 14)}`];
      case "approval_requested": {
        const asked = `${textOf(extra.caller)} needs approval: ${textOf(extra.tool_name)}(${brief(extra.tool_args)})`;
        return [`${yellow("?")} ${shorten(asked, 4)}  ${dim(textOf(extra.tool_call_id))}`];
      }
      case "approval_answered": {
        const by = extra.by === undefined ? "" : ` by ${textOf(extra.by)}`;
        const why = extra.reason === undefined ? "" : `: ${textOf(extra.reason)}`;
        return [`  ${dim(textOf(extra.decision))} ${shorten(`${textOf(extra.tool_name)}${by}${why}`, 14)}`];
      }
      case "agent_error":
        return [`  ${red("error")} ${shorten(data.description ?? "", 8)}`];
      case "interswarm_message_sent":
        return (
          left(textOf(extra.swarm)) ??
          (verbose ? [`  ${dim(escapeControlCharacters(data.description ?? ""))}`] : [])
        );
      case "interswarm_message_received":
        return verbose ? [`  ${dim(escapeControlCharacters(data.description ?? event.event))}`] : [];
      case "interswarm_message_error":
        return [
          ...(left(textOf(extra.swarm)) ?? []),
          `  ${red("error")} ${shorten(data.description ?? "", 8)}`,
        ];
      case "task_complete":
      case "task_error":
        return ending(event);
      case "task_resumed":
        return [dim("  the task continues")];
      case "token":
        // The finished text follows.
        return [];
      default:
        return verbose
          ? [dim(`  ${escapeControlCharacters(`${event.event} ${data.description ?? ""}`).trim()}`)]
          : [];
    }
  };

  function message(extra: Readonly<Record<string, unknown>>): string[] {
    const envelope = objectOf(extra.full_message);
    const payload = objectOf(envelope.message);
    const type = textOf(envelope.msg_type);
    // The event that ends the round contains the answer.
    if (type === "broadcast_complete") return [];
    // A broadcast is one event per recipient, but one line.
    const id = textOf(envelope.id);
    if (id !== "" && id === lastMessage) return [];
    lastMessage = id;
    // It only wakes an agent whose results are shown a line above.
    if (!verbose && payload.subject === SYSTEM_SUBJECTS.actionComplete) return [];
    return letter(addressOf(payload.sender), recipientsOf(payload), type, payload);
  }

  function letter(
    from: string,
    to: string,
    type: string,
    content: { readonly subject?: unknown; readonly body?: unknown },
  ): string[] {
    const subject = textOf(content.subject);
    const head = `${from} → ${to}  ${type}  "${subject}"`;
    const painted = `${bold(from)} ${dim("→")} ${bold(to)}  ${dim(type)}  ${yellow(`"${subject}"`)}`;
    const body = textOf(content.body);
    if (verbose) return [painted, ...indent(body)];
    return [`${painted}  ${shorten(body, head.length + 2)}`.trimEnd()];
  }

  function noteLeaving(caller: string, name: string, given: unknown): void {
    const type = /^send_(request|response|interrupt)$/.exec(name)?.[1];
    const args = objectOf(given);
    const to = textOf(args.target);
    const at = to.indexOf("@");
    if (type === undefined || at < 0) return;
    const swarm = to.slice(at + 1);
    leaving.set(swarm, [...(leaving.get(swarm) ?? []), letter(caller, to, type, args)]);
  }

  function left(swarm: string): string[] | undefined {
    return leaving.get(swarm)?.shift();
  }

  function toolCall(extra: Readonly<Record<string, unknown>>): string[] {
    const name = textOf(extra.tool_name);
    const given = brief(extra.tool_args);
    const id = textOf(extra.tool_call_id);
    if (id !== "") argumentsOf.set(id, given);
    noteLeaving(textOf(extra.caller), name, extra.tool_args);
    const said = textOf(extra.preamble);
    const lines = said === "" ? [] : [dim(`  ${textOf(extra.caller)}: ${shorten(said, 6)}`)];
    if (!verbose || SHOWN_OTHERWISE.has(name)) return lines;
    return [...lines, dim(`  ${textOf(extra.caller)} calls ${name}(${shorten(given, 20)})`)];
  }

  function actionText(extra: Readonly<Record<string, unknown>>): string {
    const name = textOf(extra.tool_name);
    const given = argumentsOf.get(textOf(extra.tool_call_id)) ?? "";
    const caller = textOf(extra.caller);
    return `${name}(${shorten(given, caller.length + name.length + 12)})`;
  }

  function actionEnd({ event, data }: TaskEvent): string[] {
    const { caller, tool_name, result } = data.extra_data;
    argumentsOf.delete(textOf(data.extra_data.tool_call_id));
    // A server of the reference gives the result only inside the description.
    const text = typeof result === "string" ? result : (data.description ?? "");
    const mark = event === "action_error" ? red("failed:") : dim("got");
    const who = `${textOf(caller)} ${textOf(tool_name)}`.trim();
    if (verbose) return [`  ${cyan(who)} ${mark}`, ...indent(escapeControlCharacters(text))];
    return [`  ${cyan(textOf(caller))} ${mark} ${shorten(text, who.length + 10)}`];
  }

  function breakpoint(extra: Readonly<Record<string, unknown>>, description: string | undefined): string[] {
    const calls = Array.isArray(extra.calls) ? extra.calls : [];
    if (calls.length === 0)
      return [`${yellow("?")} ${shorten(description ?? "a breakpoint was reached", 4)}`];
    return calls.map((call: unknown) => {
      const { name, arguments: given, call_id } = objectOf(call);
      const asked = `${textOf(extra.caller)} asks ${textOf(name)}(${brief(parsed(given))})`;
      return `${yellow("?")} ${shorten(asked, 4)}  ${dim(textOf(call_id))}`;
    });
  }

  function ending({ event, data }: TaskEvent): string[] {
    const status = data.status ?? (event === "task_complete" ? "completed" : "failed");
    const response = escapeControlCharacters(data.response ?? "");
    switch (status) {
      case "paused":
        return data.extra_data.reason === undefined
          ? [
              yellow(
                `paused: the task waits for ${data.extra_data.approvals === undefined ? "an answer" : "approval"}`,
              ),
            ]
          : [yellow(`paused (${textOf(data.extra_data.reason)})`), ...indent(response)];
      case "completed":
        return [`${green("✓ completed")}`, ...indent(response)];
      case "cancelled":
        return [red("✗ cancelled")];
      case "failed":
        return [`${red("✗ failed")} ${textOf(data.extra_data.code)}`.trimEnd(), ...indent(response)];
      case "running":
        return [];
      default:
        return status satisfies never;
    }
  }

  /** Cuts text to the rest of the line after `used` characters. */
  function shorten(text: string, used: number): string {
    const line = escapeControlCharacters(text).replace(/\s+/g, " ").trim();
    const room = Math.max(24, columns - used - 2);
    return verbose || line.length <= room ? line : `${line.slice(0, room - 1)}…`;
  }
}

function indent(text: string): string[] {
  return escapeControlCharacters(text)
    .trim()
    .split("\n")
    .map((line) => `    ${line}`);
}

function brief(value: unknown): string {
  const fields = Object.entries(objectOf(value));
  return fields.map(([name, field]) => `${name}: ${JSON.stringify(field) ?? ""}`).join(", ");
}

function parsed(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return { value };
  }
}

function recipientsOf(payload: Readonly<Record<string, unknown>>): string {
  if (Array.isArray(payload.recipients)) return payload.recipients.map(addressOf).join(", ") || "nobody";
  return addressOf(payload.recipient);
}

function addressOf(value: unknown): string {
  return textOf(objectOf(value).address) || "?";
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? escapeControlCharacters(value) : "";
}
