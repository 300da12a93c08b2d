/** A turn as its agent sees it. What is costly to make is made when it is asked for. */
import type { MAILMessage } from "../../mail/message.js";
import { SYSTEM_SUBJECTS } from "../../mail/subjects.js";
import type { HistoryItem, OfferedTool, Peer, ResultItem, TaskFacts, ToolChoice, Turn } from "../agent.js";
import type { InstanceId } from "../ports.js";
import { historyOf, type Mail, type TaskState } from "../state.js";
import type { Stopper } from "./stopper.js";

export interface TurnParts {
  readonly state: TaskState;
  readonly facts: TaskFacts;
  readonly agent: string;
  readonly mails: readonly [Mail, ...Mail[]];
  readonly tools: readonly OfferedTool[];
  readonly toolChoice: ToolChoice;
  readonly peers: readonly Peer[];
  readonly params: Readonly<Record<string, unknown>>;
  readonly attempt: number;
  readonly stopper: Stopper;
  readonly emitDelta: (delta: string) => void;
}

export class TurnView implements Turn {
  readonly agent: string;
  readonly task: TaskFacts;
  readonly messages: readonly [MAILMessage, ...MAILMessage[]];
  readonly tools: readonly OfferedTool[];
  readonly toolChoice: ToolChoice;
  readonly peers: readonly Peer[];
  readonly params: Readonly<Record<string, unknown>>;
  readonly attempt: number;
  readonly emitDelta: (delta: string) => void;
  readonly #state: TaskState;
  readonly #stopper: Stopper;
  #history: readonly HistoryItem[] | undefined;

  constructor(parts: TurnParts) {
    this.agent = parts.agent;
    this.task = parts.facts;
    const [first, ...rest] = parts.mails;
    this.messages =
      rest.length === 0 ? [first.message] : [first.message, ...rest.map((mail) => mail.message)];
    this.tools = parts.tools;
    this.toolChoice = parts.toolChoice;
    this.peers = parts.peers;
    this.params = parts.params;
    this.attempt = parts.attempt;
    this.emitDelta = parts.emitDelta;
    this.#state = parts.state;
    this.#stopper = parts.stopper;
  }

  get swarm(): string {
    return this.#state.swarm;
  }

  get instance(): InstanceId {
    return this.#state.instance;
  }

  get signal(): AbortSignal {
    return this.#stopper.signal;
  }

  /** Nothing else is added to an agent's memory while its turn is under way, so it can be put together late. */
  get history(): readonly HistoryItem[] {
    if (this.#history === undefined) {
      const items = historyOf(this.#state, this.agent);
      const number = this.#state.number + 1;
      for (const message of this.messages) {
        if (message.message.subject === SYSTEM_SUBJECTS.actionCompleteBroadcast) continue;
        items.push({ kind: "message", number, message });
      }
      this.#history = items;
    }
    return this.#history;
  }

  get results(): readonly ResultItem[] {
    return lastResults(this.#state.agents.get(this.agent)?.history ?? []);
  }
}

/** The results of the last answer's calls. */
export function lastResults(history: readonly HistoryItem[]): ResultItem[] {
  const results: ResultItem[] = [];
  for (let at = history.length - 1; at >= 0; at--) {
    const item = history[at];
    if (item === undefined || item.kind === "answer") break;
    if (item.kind === "result") results.unshift(item);
  }
  return results;
}
