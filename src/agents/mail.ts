/** The input of a function agent: the turn with convenient accessors, and one verb for each possible operation. */
import { MailroomError } from "../base/index.js";
import type { HistoryItem, PlannedCall, ResultItem, Turn, Usage } from "../engine/index.js";
import type { AddressType, AgentToolCall, MAILMessage, MessageType } from "../mail/index.js";
import {
  actionResults,
  answersOf,
  currentMessage,
  lastFromCorrespondent,
  type OpenWork,
  openWorkOf,
  senderOf,
  unanswered,
} from "./open-work.js";

/** An action with typed arguments, as `defineAction` returns it. */
export interface CallableAction<Arguments> {
  readonly name: string;
  readonly "~arguments"?: Arguments;
}

/**
 * A turn of a function agent. Calls of verbs are recorded in order and take effect together when the function returns.
 * A function that throws sends nothing.
 */
export interface Mail extends Turn {
  /** The message to answer. When results of actions arrive, still the message that led to the actions. */
  readonly message: MAILMessage;
  readonly subject: string;
  readonly body: string;
  readonly type: MessageType;
  /** The sender: `weather`, `weather@elsewhere`, or the id of a user. */
  readonly from: string;
  readonly fromType: AddressType;
  /** The message that began this round: the user's question, or the latest request of an agent. */
  readonly question: MAILMessage | undefined;

  /** The result of the last action that the agent called in its previous turn. */
  readonly result: ResultItem | undefined;
  /** The result of the given action in the previous turn. */
  resultOf(action: string | CallableAction<unknown>): ResultItem | undefined;
  /** The latest answer of an agent in this round. */
  answerFrom(agent: string): string | undefined;
  /** Agents that received a request in this round and have neither answered nor failed. */
  readonly waitingFor: readonly string[];
  /** Whether this agent has a tool (one of its actions, `task_complete`, …) in this turn. */
  can(tool: string): boolean;

  /**
   * Answers the sender: a response to an agent, the completion of the task to a user.
   * @throws MailroomError `cannot_reply` to a user when this agent cannot complete tasks.
   */
  reply(body: string, options?: { readonly subject?: string }): void;
  /** Sends a request to another agent. Its answer arrives as mail in a later turn. */
  request(agent: string, subject: string, body: string): void;
  /** Sends a response to any agent, not only the sender. */
  respond(agent: string, subject: string, body: string): void;
  /** Calls an action. The agent runs again with its result. */
  act<Arguments extends object>(action: CallableAction<Arguments>, args: NoInfer<Arguments>): void;
  act(action: string, args?: Readonly<Record<string, unknown>>): void;
  /** Ends the task with its final answer. */
  complete(message: string): void;
  /** Writes to every agent of the swarm. */
  broadcast(subject: string, body: string): void;
  /** Writes to an agent ahead of its other mail. */
  interrupt(agent: string, subject: string, body: string): void;
  /** Ends the turn and waits for mail. */
  await(reason?: string): void;
  /** Keeps a broadcast in the history without answering it. */
  acknowledge(note?: string): void;
  /** Drops a broadcast. */
  ignore(reason?: string): void;

  /** Streams a piece of text to the clients that follow the task. */
  emit(delta: string): void;
}

export interface MailHandle {
  readonly mail: Mail;
  /** The calls recorded so far. */
  readonly calls: readonly AgentToolCall[];
}

/** @param newId gives each call an id; ids must be unique within a task. */
export function openMailHandle(turn: Turn, newId: () => string): MailHandle {
  const mail = new TurnMail(turn, newId);
  return { mail, calls: mail.recorded };
}

class TurnMail implements Mail {
  readonly recorded: AgentToolCall[] = [];
  readonly message: MAILMessage;
  readonly #turn: Turn;
  readonly #newId: () => string;
  #work: OpenWork | undefined;

  constructor(turn: Turn, newId: () => string) {
    this.#turn = turn;
    this.#newId = newId;
    this.message = currentMessage(turn);
  }

  /** Lazy: agents that only answer never need their history assembled. */
  #openWork(): OpenWork {
    this.#work ??= openWorkOf(this.#turn);
    return this.#work;
  }

  get swarm(): string {
    return this.#turn.swarm;
  }
  get agent(): string {
    return this.#turn.agent;
  }
  get task(): Turn["task"] {
    return this.#turn.task;
  }
  get instance(): Turn["instance"] {
    return this.#turn.instance;
  }
  get messages(): Turn["messages"] {
    return this.#turn.messages;
  }
  get history(): readonly HistoryItem[] {
    return this.#turn.history;
  }
  get results(): readonly ResultItem[] {
    return this.#turn.results;
  }
  get tools(): Turn["tools"] {
    return this.#turn.tools;
  }
  get allTools(): Turn["allTools"] {
    return this.#turn.allTools;
  }
  get toolChoice(): Turn["toolChoice"] {
    return this.#turn.toolChoice;
  }
  get peers(): Turn["peers"] {
    return this.#turn.peers;
  }
  get params(): Turn["params"] {
    return this.#turn.params;
  }
  get attempt(): number {
    return this.#turn.attempt;
  }
  get signal(): AbortSignal {
    return this.#turn.signal;
  }
  emitDelta(...piece: Parameters<Turn["emitDelta"]>): void {
    this.#turn.emitDelta(...piece);
  }
  resetDeltas(): void {
    this.#turn.resetDeltas();
  }
  reportUsage(usage: Usage): void {
    this.#turn.reportUsage(usage);
  }
  beginCall(call: PlannedCall): Promise<void> {
    return this.#turn.beginCall(call);
  }
  emit(delta: string): void {
    this.#turn.emitDelta(delta);
  }

  get subject(): string {
    return this.message.message.subject;
  }
  get body(): string {
    return this.message.message.body;
  }
  get type(): MessageType {
    return this.message.msg_type;
  }
  get from(): string {
    return senderOf(this.message, this.swarm);
  }
  get fromType(): AddressType {
    return this.message.message.sender.address_type;
  }
  get question(): MAILMessage | undefined {
    return this.#openWork().opener;
  }

  get result(): ResultItem | undefined {
    return actionResults(this.#turn).at(-1);
  }
  resultOf(action: string | CallableAction<unknown>): ResultItem | undefined {
    const name = nameOf(action);
    return this.results.findLast((result) => result.name === name);
  }
  answerFrom(agent: string): string | undefined {
    return answersOf(this.#turn, this.#openWork()).findLast(({ from }) => from === agent)?.body;
  }
  get waitingFor(): readonly string[] {
    return unanswered(this.#turn, this.#openWork());
  }
  can(tool: string): boolean {
    return this.tools.some(({ name }) => name === tool);
  }

  reply(body: string, options: { readonly subject?: string } = {}): void {
    // The system cannot be answered, so the reply goes to the last correspondent.
    const message =
      this.fromType === "system" ? (lastFromCorrespondent(this.#turn) ?? this.message) : this.message;
    const { sender, subject } = message.message;
    switch (sender.address_type) {
      case "agent":
        this.respond(senderOf(message, this.swarm), options.subject ?? replySubject(subject), body);
        return;
      case "user":
      case "admin":
        if (!this.can("task_complete")) {
          throw new MailroomError(
            "cannot_reply",
            `agent '${this.agent}' cannot reply to ${sender.address_type} '${sender.address}': a user is answered ` +
              "by completing the task, which this agent cannot do. Set canCompleteTasks, or send the answer to an " +
              "agent that can.",
          );
        }
        this.complete(body);
        return;
      case "system":
        throw new MailroomError(
          "cannot_reply",
          `agent '${this.agent}' cannot reply: only the system wrote ('${subject}'). ` +
            "Use mail.request, mail.complete or mail.await instead.",
        );
    }
  }
  request(agent: string, subject: string, body: string): void {
    this.#record("send_request", { target: agent, subject, body });
  }
  respond(agent: string, subject: string, body: string): void {
    this.#record("send_response", { target: agent, subject, body });
  }
  act<Arguments extends object>(action: CallableAction<Arguments>, args: NoInfer<Arguments>): void;
  act(action: string, args?: Readonly<Record<string, unknown>>): void;
  act(action: string | CallableAction<unknown>, args: object = {}): void {
    this.#record(nameOf(action), { ...args });
  }
  complete(message: string): void {
    this.#record("task_complete", { finish_message: message });
  }
  broadcast(subject: string, body: string): void {
    this.#record("send_broadcast", { subject, body });
  }
  interrupt(agent: string, subject: string, body: string): void {
    this.#record("send_interrupt", { target: agent, subject, body });
  }
  await(reason?: string): void {
    this.#record("await_message", reason === undefined ? {} : { reason });
  }
  acknowledge(note?: string): void {
    this.#record("acknowledge_broadcast", note === undefined ? {} : { note });
  }
  ignore(reason?: string): void {
    this.#record("ignore_broadcast", reason === undefined ? {} : { reason });
  }

  #record(name: string, args: Readonly<Record<string, unknown>>): void {
    this.recorded.push({ id: this.#newId(), name, args });
  }
}

function nameOf(action: string | CallableAction<unknown>): string {
  return typeof action === "string" ? action : action.name;
}

/** Adds `Re:` once. */
function replySubject(subject: string): string {
  return /^re:/i.test(subject) ? subject : `Re: ${subject}`;
}
