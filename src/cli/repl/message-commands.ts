/** Commands that send messages to the swarm and to other swarms. */
import { MailroomError } from "../../base/index.js";
import { endsRound, type MessageAnswer, type MessageOptions, type TaskEvent } from "../../client/index.js";
import { EXIT, type ExitCode } from "../exit.js";
import { LiveAnswer } from "../live-answer.js";
import { createRenderer } from "../render.js";
import { escapeControlCharacters } from "../terminal.js";
import { type ParsedArguments, type ReplCommand, type ReplSession, show } from "./command.js";

const MESSAGE_OPTIONS = {
  subject: { type: "string", short: "s" },
  type: { type: "string", short: "t" },
  "task-id": { type: "string" },
  entrypoint: { type: "string", short: "e" },
  "resume-from": { type: "string" },
  kwargs: { type: "string", short: "k" },
} as const;

const OLD_FLAGS = { "-tid": "--task-id", "-se": "--show-events", "-rf": "--resume-from" } as const;

const USAGE = "BODY [-s SUBJECT] [-t TYPE] [--task-id ID] [-e ENTRYPOINT] [--resume-from WHAT] [-k JSON]";

export const MESSAGE_COMMANDS: readonly ReplCommand[] = [
  {
    name: "message",
    aliases: ["m", "msg"],
    usage: `${USAGE} [--show-events] [--no-wait]`,
    minimum: 1,
    maximum: 1,
    endsInText: true,
    options: {
      ...MESSAGE_OPTIONS,
      "show-events": { type: "boolean" },
      "no-wait": { type: "boolean" },
    },
    oldFlags: OLD_FLAGS,
    summary: "send a message to the swarm and show its work and answer",
    run: async (session, given) => {
      const options = optionsOf(given);
      // Scripts get only the answer; users see the events.
      if (!session.json && !given.flag("no-wait")) return watch(session, given.argument(0), options);
      const answer = await session.client.postMessage(given.argument(0), {
        ...options,
        showEvents: given.flag("show-events"),
        ...(given.flag("no-wait") && { wait: false }),
        signal: session.signal,
      });
      return showAnswer(session, answer);
    },
  },
  {
    name: "message-stream",
    aliases: ["ms", "msg-s"],
    usage: USAGE,
    minimum: 1,
    maximum: 1,
    endsInText: true,
    options: MESSAGE_OPTIONS,
    oldFlags: OLD_FLAGS,
    summary: "same as message; with --json, print one event per line",
    run: (session, given) => watch(session, given.argument(0), optionsOf(given)),
  },
  {
    name: "message-interswarm",
    aliases: ["mi", "msg-i"],
    usage: "BODY TARGETS USER_TOKEN [-s SUBJECT] [-t request|broadcast] [--task-id ID]",
    minimum: 3,
    maximum: 3,
    options: { subject: MESSAGE_OPTIONS.subject, type: MESSAGE_OPTIONS.type, "task-id": { type: "string" } },
    oldFlags: OLD_FLAGS,
    summary: "send to agents of other swarms (TARGETS: agent@swarm,agent@swarm)",
    run: async (session, given) => {
      const targets = given
        .argument(1)
        .split(",")
        .map((target) => target.trim())
        .filter((target) => target !== "");
      const subject = given.text("subject");
      const taskId = given.text("task-id");
      const type = oneOf("type", given.text("type"), ["request", "broadcast"] as const);
      const answer = await session.client.sendInterswarmMessage({
        body: given.argument(0),
        targets,
        userToken: given.argument(2),
        ...(subject !== undefined && { subject }),
        ...(taskId !== undefined && { taskId }),
        ...(type !== undefined && { msgType: type }),
        signal: session.signal,
      });
      return showAnswer(session, answer);
    },
  },
];

/** The part of a session that printing needs. */
export type EventPrinter = Pick<ReplSession, "terminal" | "json" | "verbose">;

/** Prints a task's events as they arrive, and its outcome. */
export async function renderEvents(
  session: EventPrinter,
  events: AsyncIterable<TaskEvent>,
): Promise<ExitCode> {
  const { terminal } = session;
  const render = createRenderer({
    colors: terminal.colors,
    columns: terminal.columns,
    verbose: session.verbose,
  });
  const answer = terminal.interactive ? new LiveAnswer(terminal) : undefined;
  let last: TaskEvent | undefined;
  for await (const event of events) {
    last = event;
    if (session.json) terminal.json(event);
    else if (answer?.take(event) !== true) {
      const lines = render(event);
      if (lines.length === 0) continue;
      const printed = answer?.end() ?? "";
      // The answer is on the terminal already.
      const isShown = printed !== "" && endsRound(event) && event.data.response?.trim() === printed.trim();
      for (const line of isShown ? lines.slice(0, 1) : lines) terminal.out(line);
    }
  }
  answer?.end();
  if (last === undefined || !endsRound(last)) return EXIT.ok;
  const status = last.data.status ?? (last.event === "task_error" ? "failed" : "completed");
  if (!session.json && status === "paused" && waitsForAnswer(last) && last.data.task_id !== undefined) {
    terminal.out(terminal.colors.dim(`  answer with: task-answer ${last.data.task_id} "…"`));
  }
  return exitFor(status);
}

/** A task that an agent paused has no open breakpoint. */
function waitsForAnswer({ data }: TaskEvent): boolean {
  return data.extra_data.reason === undefined;
}

export function showAnswer(session: EventPrinter, answer: MessageAnswer): ExitCode {
  const { dim } = session.terminal.colors;
  const waiting = (answer.breakpoint ?? []).map(
    (call) =>
      `? ${escapeControlCharacters(call.name)}(${escapeControlCharacters(call.arguments)})  ${dim(call.call_id)}`,
  );
  const text =
    answer.status === "paused" && waiting.length > 0 ? waiting : [escapeControlCharacters(answer.response)];
  const head = answer.status === undefined || answer.status === "completed" ? [] : [answer.status];
  const where = answer.task_id === undefined ? [] : [dim(`task ${escapeControlCharacters(answer.task_id)}`)];
  show(session, answer, [...head, ...text.filter((line) => line !== ""), ...where]);
  return exitFor(answer.status ?? "completed");
}

async function watch(session: ReplSession, body: string, options: MessageOptions): Promise<ExitCode> {
  return renderEvents(
    session,
    session.client.postMessageStream(body, { ...options, signal: session.signal }),
  );
}

function exitFor(status: NonNullable<MessageAnswer["status"]>): ExitCode {
  switch (status) {
    case "failed":
    case "cancelled":
      return EXIT.taskFailed;
    case "paused":
      return EXIT.taskPaused;
    case "running":
    case "completed":
      return EXIT.ok;
    default:
      return status satisfies never;
  }
}

function optionsOf(given: ParsedArguments): MessageOptions {
  const subject = given.text("subject");
  const taskId = given.text("task-id");
  const entrypoint = given.text("entrypoint");
  const kwargs = kwargsOf(given.text("kwargs"));
  const type = oneOf("type", given.text("type"), ["request", "broadcast", "interrupt"] as const);
  const resume = oneOf("resume-from", given.text("resume-from"), [
    "user_response",
    "breakpoint_tool_call",
  ] as const);
  return {
    ...(subject !== undefined && { subject }),
    ...(taskId !== undefined && { taskId }),
    ...(entrypoint !== undefined && { entrypoint }),
    ...(type !== undefined && { msgType: type }),
    ...(resume !== undefined && { resumeFrom: resume }),
    ...(kwargs !== undefined && { kwargs }),
  };
}

function oneOf<T extends string>(
  name: string,
  value: string | undefined,
  known: readonly T[],
): T | undefined {
  if (value === undefined) return undefined;
  const found = known.find((one) => one === value);
  if (found !== undefined) return found;
  throw new MailroomError("usage", `--${name} '${value}' must be one of ${known.join(", ")}`);
}

function kwargsOf(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Reported below, like any other text that is not an object.
  }
  throw new MailroomError("usage", `--kwargs '${text}' is not a JSON object`);
}
