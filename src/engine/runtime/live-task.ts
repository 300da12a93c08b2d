/** A task in memory: its state, and what is going on in it right now. */

import type { TaskFacts, Turn } from "../agent.js";
import type { TaskStatus } from "../ports.js";
import { comesBefore, type Mail, type TaskState } from "../state.js";
import { instanceKey } from "./core.js";
import { taskChannel } from "./follow.js";
import type { Stopper } from "./stopper.js";

export interface RunningTurn {
  readonly agent: string;
  readonly mails: readonly [Mail, ...Mail[]];
  readonly stopper: Stopper;
  readonly attempt: number;
  /** What its instance had for it when it began. */
  readonly params: Turn["params"];
}

export interface RunningAction {
  readonly agent: string;
  readonly callId: string;
  readonly stopper: Stopper;
}

export class LiveTask {
  state: TaskState;
  readonly facts: TaskFacts;
  /** Asked for several times per message, so they are put together once. */
  readonly instanceKey: string;
  readonly channel: string;
  /** Agents whose function is being called. */
  readonly turns = new Map<string, RunningTurn>();
  readonly actions = new Map<string, RunningAction>();
  /** Agents in a turn, from the call until the last result is durable: none of them takes more mail. */
  readonly busy = new Set<string>();
  /** Those of them that have only to become durable, and hold no slot for turns any more. */
  readonly writing = new Set<string>();
  /** Appends on their way to the store. */
  uncommitted = 0;
  /** The last number that is durable. The state may be ahead of it; nothing is acted on before (law 1). */
  committed: number;
  /** Numbers up to which mail was there when the process started: a turn with it may have been under way. */
  recoveredUpTo = 0;
  /** Agents whose recovered turn was journaled as such since the start. */
  readonly recovering = new Set<string>();
  /** Agents whose function is called as soon as that is journaled. */
  readonly starting = new Set<string>();
  /** The status that the task's row says. */
  storedStatus: TaskStatus;
  snapshotAt: number;
  /** In the scheduler's queue. */
  queued = false;
  /** Thrown out of memory because a commit failed: nothing may be decided on this picture any more. */
  lost = false;
  /** People and streams that hold on to it. */
  holds = 0;
  cancelDeadline: (() => void) | undefined;
  /** When the next answer of another swarm is overdue, and what stops the watch for it. */
  replyDue: number | undefined;
  cancelReply: (() => void) | undefined;

  constructor(state: TaskState, stored: TaskStatus, committed: number, snapshotAt = 0) {
    this.state = state;
    this.committed = committed;
    this.storedStatus = stored;
    this.snapshotAt = snapshotAt;
    this.instanceKey = instanceKey(state.instance);
    this.channel = taskChannel(state.key);
    this.facts = {
      id: state.taskId,
      key: state.key,
      owner: state.owner,
      get contributors() {
        return state.contributors;
      },
      get entrypoint() {
        return state.entrypoint;
      },
    };
  }

  get key(): string {
    return this.state.key;
  }

  /** Whether the agent's function is being called or about to be. */
  isStarted(agent: string): boolean {
    return this.turns.has(agent) || this.starting.has(agent);
  }

  /** Nothing is going on and nothing is about to: it can leave memory. */
  get resting(): boolean {
    return (
      this.uncommitted === 0 &&
      this.holds === 0 &&
      this.busy.size === 0 &&
      this.turns.size === 0 &&
      this.actions.size === 0 &&
      !this.queued
    );
  }

  cancelTimers(): void {
    this.cancelDeadline?.();
    this.cancelReply?.();
  }

  /** The agent whose mail is served next, among those that `mayRun`; decisions B2. */
  nextRunnable(mayRun: (agent: string) => boolean): { agent: string; mails: [Mail, ...Mail[]] } | undefined {
    const { state } = this;
    if (state.status !== "running" || this.lost) return undefined;
    if (state.lastTurn !== undefined) return this.#lastTurn(state.lastTurn, mayRun);
    let best: { agent: string; head: Mail } | undefined;
    for (const [agent, { mailbox, turn }] of state.agents) {
      const head = state.manual ? mailbox.find((mail) => mail.manual !== undefined) : mailbox[0];
      if (head === undefined || head.number > this.committed) continue;
      if (turn !== undefined || this.busy.has(agent) || !mayRun(agent)) continue;
      if (best === undefined || comesBefore(head, best.head)) best = { agent, head };
    }
    if (best === undefined) return undefined;
    const { agent, head } = best;
    if (!state.manual) return { agent, mails: [head] };
    // A manual step takes everything that has gathered.
    const rest =
      state.agents.get(agent)?.mailbox.filter((mail) => mail !== head && mail.number <= this.committed) ?? [];
    return { agent, mails: withFirst([...rest, head]) };
  }

  #lastTurn(
    notice: number,
    mayRun: (agent: string) => boolean,
  ): { agent: string; mails: [Mail, ...Mail[]] } | undefined {
    const agent = this.state.entrypoint;
    const entrypoint = this.state.agents.get(agent);
    const mail = entrypoint?.mailbox.find((waiting) => waiting.number === notice);
    if (mail === undefined || mail.number > this.committed) return undefined;
    if (entrypoint?.turn !== undefined || this.busy.has(agent) || !mayRun(agent)) return undefined;
    return { agent, mails: [mail] };
  }
}

function withFirst(mails: Mail[]): [Mail, ...Mail[]] {
  const [first, ...rest] = mails;
  if (first === undefined) throw new Error("a turn takes at least one message");
  return [first, ...rest];
}
