/** The mail of an agent that runs in another process, with one verb for each operation. */
import { isRecord } from "../base/index.js";

/** What an agent may return: the text of its reply, or nothing if it called verbs. */
export type AgentReply =
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement is allowed
  string | undefined | void;

/**
 * A message to an agent in another process. Calls of verbs are recorded in order and take effect together, once, when
 * `run` returns. A `run` that throws sends nothing, and the agent that asked is notified.
 * @example
 * ```ts
 * const run = (mail: AgentMail) => {
 *   if (mail.body === "") mail.reply("Send me a text.");
 *   else mail.request("editor", "Please check", mail.body);
 * };
 * ```
 */
export interface AgentMail {
  readonly id: string;
  /** `request`, `response`, `broadcast`, `interrupt`, … */
  readonly type: string;
  /** The sender: an agent, `user:ann`, `admin:root` or `system`. */
  readonly from: string;
  readonly subject: string;
  readonly body: string;
  readonly taskId: string;
  /** The conversation of the task. */
  readonly conversationId: string;
  /** How often the message was handed out, this time included. */
  readonly attempt: number;
  /** Names of the tools that the agent has now: `send_response`, `task_complete`, its actions, … */
  readonly tools: readonly string[];
  /** Aborts when the answer is no longer needed: time limit, `close`, another process. */
  readonly signal: AbortSignal;

  /** Answers the sender: a response to an agent, the final answer to a user if the agent can complete tasks. */
  reply(body: string, options?: { readonly subject?: string }): void;
  /** Sends a request to another agent. Its answer arrives as mail. */
  request(agent: string, subject: string, body: string): void;
  /** Sends a response to any agent, not only the sender. */
  respond(agent: string, subject: string, body: string): void;
  /** Writes to every agent of the swarm. */
  broadcast(subject: string, body: string): void;
  /** Writes to an agent ahead of its other mail. */
  interrupt(agent: string, subject: string, body: string): void;
  /** Calls an action of the agent. Its result arrives as mail. */
  act(action: string, args?: Readonly<Record<string, unknown>>): void;
  /** Ends the task with its final answer. */
  complete(message: string): void;
  /** Ends the turn and waits for mail. */
  await(reason?: string): void;
  /** Keeps a broadcast in the history without answering it. */
  acknowledge(note?: string): void;
  /** Drops a broadcast. */
  ignore(reason?: string): void;
}

export interface AgentCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** What `mailroom/answer` takes. */
export interface AgentAnswer {
  readonly calls?: readonly AgentCall[];
  readonly text?: string;
}

/** The facts of a lent message. */
export type LentMail = Omit<AgentMail, "signal" | Verb>;
type Verb =
  | "reply"
  | "request"
  | "respond"
  | "broadcast"
  | "interrupt"
  | "act"
  | "complete"
  | "await"
  | "acknowledge"
  | "ignore";

/** Returns nothing for a message that is not mail of the swarm. */
export function toLentMail(message: unknown): LentMail | undefined {
  if (!isRecord(message) || !isRecord(message.payload) || !isRecord(message.meta)) return undefined;
  const { id, from, payload, meta } = message;
  const { _meta: lent, mail } = meta;
  if (!isRecord(lent) || typeof lent.attempt !== "number" || !isRecord(mail)) return undefined;
  return {
    id: String(id),
    type: String(payload.type),
    from: String(from),
    subject: String(payload.subject ?? ""),
    body: String(payload.body ?? ""),
    taskId: String(lent.taskId),
    conversationId: String(mail.conversationId),
    attempt: lent.attempt,
    tools: Array.isArray(lent.tools) ? lent.tools.map(String) : [],
  };
}

/** Runs the agent on a message. @throws what `run` throws, or an error if it neither returned nor called anything */
export async function answerMail(
  lent: LentMail,
  run: (mail: AgentMail) => AgentReply | Promise<AgentReply>,
  signal: AbortSignal,
): Promise<AgentAnswer> {
  const calls: AgentCall[] = [];
  let text: string | undefined;
  const call = (name: string, args: AgentCall["args"]): void => {
    calls.push({ name, args });
  };
  const mail: AgentMail = {
    ...lent,
    signal,
    reply: (body, { subject = replySubject(lent.subject) } = {}) => {
      if (isAgent(lent.from)) mail.respond(lent.from, subject, body);
      else if (lent.from === "system") text = body;
      else if (lent.tools.includes("task_complete")) mail.complete(body);
      else {
        throw new Error(
          `this agent cannot reply to ${lent.from}: a user is answered by completing the task, which it cannot do`,
        );
      }
    },
    request: (target, subject, body) => call("send_request", { target, subject, body }),
    respond: (target, subject, body) => call("send_response", { target, subject, body }),
    broadcast: (subject, body) => call("send_broadcast", { subject, body }),
    interrupt: (target, subject, body) => call("send_interrupt", { target, subject, body }),
    act: (action, args = {}) => call(action, args),
    complete: (message) => call("task_complete", { finish_message: message }),
    await: (reason) => call("await_message", reason === undefined ? {} : { reason }),
    acknowledge: (note) => call("acknowledge_broadcast", note === undefined ? {} : { note }),
    ignore: (reason) => call("ignore_broadcast", reason === undefined ? {} : { reason }),
  };
  const returned = await run(mail);
  const acted = calls.length > 0 || text !== undefined;
  if (typeof returned === "string") {
    if (acted) throw new Error("run called verbs of mail and also returned a text; do one of them");
    if (isAgent(lent.from)) text = returned;
    else mail.reply(returned);
  } else if (!acted)
    throw new Error("run returned no text and called no verb; to wait for mail, call mail.await()");
  return { ...(calls.length > 0 && { calls }), ...(text !== undefined && { text }) };
}

function isAgent(from: string): boolean {
  return from !== "system" && !/^(user|admin):/.test(from);
}

function replySubject(subject: string): string {
  return /^re:/i.test(subject) ? subject : `Re: ${subject}`;
}
