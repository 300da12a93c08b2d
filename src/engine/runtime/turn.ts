/** A turn as its agent sees it. Costly values are built on first use. */
import type { MAILMessage } from "../../mail/index.js";
import { SYSTEM_SUBJECTS } from "../../mail/index.js";
import type {
  CommTarget,
  HistoryItem,
  OfferedTool,
  PlannedCall,
  ResultItem,
  StreamedCall,
  TaskInfo,
  ToolChoice,
  Turn,
  Usage,
} from "../agent.js";
import type { InstanceId } from "../ports.js";
import { historyOf, type TaskState } from "../task/state.js";
import { cleanUsage } from "../usage.js";
import type { LiveTask, RunningTurn } from "./task-work.js";

/** Receives the streamed text of an answer. */
export interface DeltaSink {
  delta(live: LiveTask, turn: RunningTurn, delta: string, call?: StreamedCall): void;
  reset(live: LiveTask, turn: RunningTurn): void;
}

/** Admits the model calls of a turn. */
export interface CallAdmission {
  beginCall(live: LiveTask, turn: RunningTurn, call: PlannedCall): Promise<void>;
}

export class TurnView implements Turn {
  readonly agent: string;
  readonly task: TaskInfo;
  readonly messages: readonly [MAILMessage, ...MAILMessage[]];
  readonly tools: readonly OfferedTool[];
  readonly allTools: readonly OfferedTool[];
  readonly toolChoice: ToolChoice;
  readonly peers: readonly CommTarget[];
  readonly params: Readonly<Record<string, unknown>>;
  readonly attempt: number;
  readonly #sink: DeltaSink & CallAdmission;
  readonly #live: LiveTask;
  readonly #turn: RunningTurn;
  readonly #state: TaskState;
  #history: readonly HistoryItem[] | undefined;

  constructor(
    sink: DeltaSink & CallAdmission,
    live: LiveTask,
    turn: RunningTurn,
    offered: Pick<Turn, "tools" | "allTools" | "toolChoice" | "peers">,
  ) {
    const { agent, mails, params, attempt } = turn;
    const [first] = mails;
    this.agent = agent;
    this.task = live.work.facts;
    this.messages =
      mails.length === 1 ? [first.message] : [first.message, ...mails.slice(1).map((mail) => mail.message)];
    this.tools = offered.tools;
    this.allTools = offered.allTools;
    this.toolChoice = offered.toolChoice;
    this.peers = offered.peers;
    this.params = params;
    this.attempt = attempt;
    this.#sink = sink;
    this.#live = live;
    this.#turn = turn;
    // The state at the start of the turn: the task may be reloaded meanwhile.
    this.#state = live.state;
  }

  get emitDelta(): Turn["emitDelta"] {
    return (delta, call) => this.#sink.delta(this.#live, this.#turn, delta, call);
  }

  get resetDeltas(): () => void {
    return () => this.#sink.reset(this.#live, this.#turn);
  }

  get reportUsage(): (usage: Usage) => void {
    return (usage) => {
      this.#turn.usage = cleanUsage(usage);
    };
  }

  get beginCall(): (call: PlannedCall) => Promise<void> {
    return (call) => this.#sink.beginCall(this.#live, this.#turn, call);
  }

  get swarm(): string {
    return this.#state.swarm;
  }

  get instance(): InstanceId {
    return this.#state.instance;
  }

  get signal(): AbortSignal {
    return this.#turn.abortHandle.signal;
  }

  /** Nothing is added to an agent's history during its turn, so it can be built late. */
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
function lastResults(history: readonly HistoryItem[]): ResultItem[] {
  const results: ResultItem[] = [];
  for (let at = history.length - 1; at >= 0; at--) {
    const item = history[at];
    if (item === undefined || item.kind === "answer") break;
    if (item.kind === "result") results.unshift(item);
  }
  return results;
}
