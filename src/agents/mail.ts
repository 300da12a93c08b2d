/** What a function agent holds in its hands: the turn, read comfortably, and one verb for each thing it can do. */
import type { HistoryItem, ResultItem, Turn } from "../engine/agent.js";
import type { AgentToolCall } from "../mail/calls.js";
import type { AddressType, MAILMessage, MessageType } from "../mail/message.js";
import { AgentError } from "./errors.js";
import {
  actionResults,
  answersOf,
  currentRound,
  lastPersonal,
  messageAtHand,
  type Round,
  senderOf,
  unanswered,
} from "./round.js";

/** Anything `act` can call by more than its name; `defineAction` makes such things. */
export interface CallableAction<Arguments> {
  readonly name: string;
  readonly "~arguments"?: Arguments;
}

/**
 * A turn of a function agent. Verbs are recorded in the order in which they are called and take effect together
 * when the function returns: nothing is sent by a function that throws.
 */
export interface Mail extends Turn {
  /** The message to deal with. While actions are being answered this is still the message that led to them. */
  readonly message: MAILMessage;
  readonly subject: string;
  readonly body: string;
  readonly type: MessageType;
  /** Who wrote: `weather`, `weather@elsewhere`, or the id of a user. */
  readonly from: string;
  readonly fromType: AddressType;
  /** The message that began this round: the user's question, or for other agents the latest request. */
  readonly question: MAILMessage | undefined;

  /** The result of the action that the agent called in its previous turn; the last one if it called several. */
  readonly result: ResultItem | undefined;
  /** The result of a certain action of the previous turn. */
  resultOf(action: string | CallableAction<unknown>): ResultItem | undefined;
  /** What an agent answered to us in this round; the latest if it wrote several times. */
  answerFrom(agent: string): string | undefined;
  /** Agents that we sent a request in this round and that have neither answered nor failed. */
  readonly waitingFor: readonly string[];
  /** Whether this agent is offered a tool (an action of its own, `task_complete`, …) in this turn. */
  can(tool: string): boolean;

  /**
   * Answers whoever wrote: a response to an agent, the completion of the task to a user.
   * @throws AgentError `cannot_reply` to a user when this agent may not complete tasks.
   */
  reply(body: string, options?: { readonly subject?: string }): void;
  /** Asks another agent. Its answer comes as mail of its own, in a later turn. */
  request(agent: string, subject: string, body: string): void;
  /** Sends a response to an agent that need not be the one that wrote. */
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
  /** Ends the turn until there is mail. */
  await(reason?: string): void;
  /** Keeps a broadcast in mind without answering it. */
  acknowledge(note?: string): void;
  /** Forgets a broadcast. */
  ignore(reason?: string): void;

  /** Streams a piece of text to those who watch the task. */
  emit(delta: string): void;
}

export interface OpenMail {
  readonly mail: Mail;
  /** The calls recorded so far. */
  readonly calls: readonly AgentToolCall[];
}

/** @param newId gives each call an id; ids must be unique within a task. */
export function openMail(turn: Turn, newId: () => string): OpenMail {
  const mail = new TurnMail(turn, newId);
  return { mail, calls: mail.recorded };
}

class TurnMail implements Mail {
  readonly recorded: AgentToolCall[] = [];
  readonly message: MAILMessage;
  readonly #turn: Turn;
  readonly #newId: () => string;
  #round: Round | undefined;

  constructor(turn: Turn, newId: () => string) {
    this.#turn = turn;
    this.#newId = newId;
    this.message = messageAtHand(turn);
  }

  /** Looked up late: agents that only answer never need their history put together. */
  #currentRound(): Round {
    this.#round ??= currentRound(this.#turn);
    return this.#round;
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
  emitDelta(delta: string): void {
    this.#turn.emitDelta(delta);
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
    return this.#currentRound().opener;
  }

  get result(): ResultItem | undefined {
    return actionResults(this.#turn).at(-1);
  }
  resultOf(action: string | CallableAction<unknown>): ResultItem | undefined {
    const name = nameOf(action);
    return this.results.findLast((result) => result.name === name);
  }
  answerFrom(agent: string): string | undefined {
    return answersOf(this.#turn, this.#currentRound()).findLast(({ from }) => from === agent)?.body;
  }
  get waitingFor(): readonly string[] {
    return unanswered(this.#turn, this.#currentRound());
  }
  can(tool: string): boolean {
    return this.tools.some(({ name }) => name === tool);
  }

  reply(body: string, options: { readonly subject?: string } = {}): void {
    // A notice of the system is nobody to answer: the reply is for the last one who wrote.
    const message = this.fromType === "system" ? (lastPersonal(this.#turn) ?? this.message) : this.message;
    const { sender, subject } = message.message;
    switch (sender.address_type) {
      case "agent":
        this.respond(senderOf(message, this.swarm), options.subject ?? replySubject(subject), body);
        return;
      case "user":
      case "admin":
        if (!this.can("task_complete")) {
          throw new AgentError(
            "cannot_reply",
            `agent '${this.agent}' cannot reply to ${sender.address_type} '${sender.address}': users are answered ` +
              "by completing the task, and this agent may not. Set canCompleteTasks, or send the answer to an " +
              "agent that may.",
          );
        }
        this.complete(body);
        return;
      case "system":
        throw new AgentError(
          "cannot_reply",
          `agent '${this.agent}' has nobody to reply to: only the system wrote ('${subject}'). ` +
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

/** `Re: …`, once. */
function replySubject(subject: string): string {
  return /^re:/i.test(subject) ? subject : `Re: ${subject}`;
}
