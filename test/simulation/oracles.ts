/**
 * Records what became durable, what was reported and what was done in a simulated world. Everything that is visible from
 * outside is checked against the disk at that moment, and again at the end.
 */

import { isRecord } from "../../src/base/index.js";
import type { ActionContext, Turn } from "../../src/engine/agent.js";
import type { SnapshotPut, TaskStatus } from "../../src/engine/ports.js";
import {
  type CommitNotification,
  type JournalLocation,
  type LentMessage,
  outcomeOf,
  type RoundOutcome,
} from "../../src/engine/runtime/index.js";
import type { TaskStats } from "../../src/engine/task/aggregate.js";
import type { Command } from "../../src/engine/task/commands.js";
import { decide } from "../../src/engine/task/decide.js";
import type { Entry, EntryKind } from "../../src/engine/task/entries.js";
import { evolve, fold } from "../../src/engine/task/evolve.js";
import type { SwarmRules } from "../../src/engine/task/rules.js";
import { comesBefore, isFromPerson, type TaskState } from "../../src/engine/task/state.js";
import type { JournalKey, StaleAppendError } from "../../src/journal/ports.js";
import { SYSTEM_SUBJECTS } from "../../src/mail/subjects.js";
import {
  callsHaveOneResult,
  MailTracker,
  mailboxesAreInOrder,
  onlyCommTargetsAreReached,
  roundsEndOnce,
} from "../kit/invariants.js";
import { problemsOf } from "../kit/published-schemas.js";
import { Disk, type DiskWatcher } from "./disk.js";
import type { Life, World } from "./world.js";

/** One call of an action, from its start in the journal to its result. Agents mark each call with a token. */
interface Call {
  readonly key: JournalKey;
  readonly token: number;
  /** Number of the newest `action_started`. */
  startedAt: number;
  attempt: number;
  /** Number of processes that had started when the action was started. */
  startedInLife: number;
  finished: boolean;
}

/** The real executions of a call. */
interface Run {
  begun: number;
  idempotencyKey: string;
  /** The process that has the result, and the result. */
  known: { readonly life: Life; readonly content: string } | undefined;
}

interface Acknowledged {
  readonly at: JournalLocation;
  readonly body: string | undefined;
  /** Whether a caller waits for the outcome. */
  readonly awaited: boolean;
}

const STATUS_AFTER: Partial<Record<EntryKind, TaskStatus>> = {
  opened: "running",
  resumed: "running",
  paused: "paused",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

/** The records of one journal. */
interface Account {
  status: TaskStatus | undefined;
  readonly calls: Map<string, number>;
  /** By token: calls that need approval. */
  readonly approvals: Map<number, "waits" | "approved">;
  /** Numbers of cancellations and timeouts: no action that was ordered before may start afterwards. */
  stoppedAt: number;
  readonly messages: Map<string, number>;
  readonly lendings: Set<string>;
  /** The highest number that was reported: every later read must include it. */
  told: number;
  /** How often its in-memory state was discarded because the store refused a commit. */
  refusals: number;
  /** By agent: the number of process deaths when it last made progress, or got its first mail. */
  readonly deathsAt: Map<string, number>;
  /** By agent: the process that last counted a recovery since the agent made progress. */
  readonly recoveredIn: Map<string, number>;
}

export interface Figures {
  entries: number;
  acknowledged: number;
  outcomes: number;
  reads: number;
  refusals: number;
  streamed: number;
  turns: number;
  turnsAhead: number;
  actions: number;
  unknown: number;
  snapshots: number;
  removed: number;
  lendings: number;
}

export class Oracles implements DiskWatcher {
  readonly disk: Disk;
  readonly figures: Figures = {
    entries: 0,
    acknowledged: 0,
    outcomes: 0,
    reads: 0,
    refusals: 0,
    streamed: 0,
    turns: 0,
    turnsAhead: 0,
    actions: 0,
    unknown: 0,
    snapshots: 0,
    removed: 0,
    lendings: 0,
  };
  /** Processes that were killed. */
  deaths = 0;
  redefinitions = 0;
  readonly #world: World;
  readonly #accounts = new Map<JournalKey, Account>();
  readonly #calls = new Map<number, Call>();
  readonly #runs = new Map<number, Run>();
  readonly #tokenOfKey = new Map<string, number>();
  readonly #acknowledged: Acknowledged[] = [];
  readonly #rejected: string[] = [];
  readonly #bodies = new Map<string, number>();
  readonly #handedIn = new Map<string, string>();
  readonly #published = new Map<JournalKey, number>();

  constructor(world: World) {
    this.#world = world;
    this.disk = new Disk(this);
  }

  // --- durable entries

  entry(key: JournalKey, number: number, entry: Entry): void {
    this.figures.entries++;
    const account = this.account(key);
    if (this.#world.tracing) this.#world.note("durable", short(key), `#${number}`, describeEntry(entry));
    account.status = STATUS_AFTER[entry.t] ?? account.status;
    switch (entry.t) {
      case "sent": {
        const { id } = entry.message;
        if (account.messages.has(id)) this.#violate(`message ${id} is in the journal twice`);
        account.messages.set(id, number);
        for (const name of entry.to) {
          if (!account.deathsAt.has(name)) account.deathsAt.set(name, this.deaths);
        }
        if (isFromPerson(entry.message)) {
          const { body } = entry.message.message;
          this.#bodies.set(body, (this.#bodies.get(body) ?? 0) + 1);
        }
        return;
      }
      case "turn":
        account.deathsAt.set(entry.agent, this.deaths);
        account.recoveredIn.delete(entry.agent);
        for (const call of entry.calls) {
          const { token } = call.args;
          if (typeof token !== "number") continue;
          account.calls.set(`${entry.agent} ${call.id}`, token);
          if (entry.approvals?.includes(call.id) === true) account.approvals.set(token, "waits");
          else if (call.name === "sell" && token % 4 !== 0) {
            this.#violate(`call ${token} needs approval, and the journal does not say so`);
          }
        }
        return;
      case "turn_failed":
        this.#checkPoison(account, entry);
        account.recoveredIn.delete(entry.agent);
        return;
      case "recovered":
        if (account.recoveredIn.get(entry.agent) === this.#life) {
          this.#violate(`a recovery of ${entry.agent} is counted twice by one process`);
        }
        account.recoveredIn.set(entry.agent, this.#life);
        return;
      case "action_started":
        this.#started(key, account, number, entry);
        return;
      case "action_finished":
        this.#finished(account, entry);
        return;
      case "approval_answered": {
        const token = account.calls.get(`${entry.agent} ${entry.call}`) ?? 0;
        account.approvals.set(token, entry.decision === "approved" ? "approved" : "waits");
        return;
      }
      case "cancelled":
        account.stoppedAt = number;
        return;
      case "failed":
        if (entry.code === "task_timeout") account.stoppedAt = number;
        return;
      case "lent":
        account.lendings.add(`${entry.agent} ${entry.attempt}`);
        return;
      default:
        return;
    }
  }

  /** A new process reads the rows first, so they must match the journals at all times. */
  written(keys: readonly JournalKey[]): void {
    for (const key of keys) {
      const row = this.disk.tasks.get(key);
      const { status } = this.account(key);
      if (row?.status !== status) {
        this.#violate(`the row of ${short(key)} says ${row?.status}, the journal ${status}`);
      }
    }
  }

  removed(key: JournalKey): void {
    this.figures.removed++;
    this.#world.note("removed", short(key));
  }

  snapshot({ journal, number }: SnapshotPut): void {
    this.figures.snapshots++;
    this.#world.note("snapshot", short(journal), `#${number}`);
  }

  stale(error: StaleAppendError): void {
    this.#violate(`an append with a gap: ${error.message}`);
  }

  /** The in-memory state of these journals is reloaded. */
  refused(keys: readonly JournalKey[]): void {
    for (const key of keys) this.account(key).refusals++;
  }

  #started(
    key: JournalKey,
    account: Account,
    number: number,
    entry: Extract<Entry, { t: "action_started" }>,
  ): void {
    const token = account.calls.get(`${entry.agent} ${entry.call}`);
    if (token === undefined) return;
    const call = this.#calls.get(token);
    if (account.approvals.get(token) === "waits") this.#violate(`call ${token} starts without approval`);
    if (call === undefined) {
      this.#calls.set(token, {
        key,
        token,
        startedAt: number,
        attempt: entry.attempt,
        startedInLife: this.#life,
        finished: false,
      });
      return;
    }
    if (call.finished) this.#violate(`call ${token} is started again after its result`);
    if (call.startedInLife === this.#life) this.#violate(`call ${token} is started twice by one process`);
    call.startedAt = number;
    call.attempt = entry.attempt;
    call.startedInLife = this.#life;
  }

  #finished(account: Account, entry: Extract<Entry, { t: "action_finished" }>): void {
    const token = account.calls.get(`${entry.agent} ${entry.call}`);
    const call = token === undefined ? undefined : this.#calls.get(token);
    if (token === undefined || call === undefined) return;
    if (call.finished) this.#violate(`call ${token} has two results`);
    call.finished = true;
    const run = this.#runs.get(token);
    if (entry.unknown === true) {
      this.figures.unknown++;
      if (run?.known !== undefined) {
        this.#violate(`the result of call ${token} was known and is journaled as '${entry.content}'`);
      }
      if (entry.content.includes("process ended") && call.startedInLife === this.#life) {
        this.#violate(`call ${token}: '${entry.content}', but it did not end`);
      }
    } else if (run?.known !== undefined && run.known.content !== entry.content) {
      this.#violate(`call ${token} gave '${run.known.content}' and is journaled as '${entry.content}'`);
    }
  }

  /** A message is abandoned after repeated process deaths; orderly shutdowns do not count. */
  #checkPoison({ deathsAt }: Account, { agent, message }: Extract<Entry, { t: "turn_failed" }>): void {
    const times = /process ended (\d+) times/.exec(message)?.[1];
    const deaths = this.deaths - (deathsAt.get(agent) ?? 0);
    if (times !== undefined && deaths < Number(times)) {
      this.#violate(`'${message}', but only ${deaths} died since ${agent} got anywhere`);
    }
    deathsAt.set(agent, this.deaths);
  }

  // --- processes

  #life = 0;

  lifeBegins(life: Life): void {
    this.#life = life.number;
    this.#published.clear();
    this.#handedIn.clear();
  }

  /** Results that only the process had are lost with it. */
  lifeEnds(life: Life): void {
    for (const run of this.#runs.values()) if (run.known?.life === life) run.known = undefined;
  }

  /** Known results are written before a process closes, if the store allows it. */
  lifeCloses(life: Life, wasDown: boolean): void {
    for (const [token, run] of this.#runs) {
      if (run.known?.life !== life) continue;
      if (!wasDown && this.#calls.get(token)?.finished !== true) {
        this.#violate(
          `the result of call ${token} was known when the process was closed, and is not written`,
        );
      }
      run.known = undefined;
    }
  }

  // --- reports to callers

  acknowledged(at: JournalLocation, body: string | undefined, awaited: boolean): void {
    this.figures.acknowledged++;
    this.#world.note("acknowledged", short(at.key), `#${at.number}`);
    this.#acknowledged.push({ at, body, awaited });
    this.#checkAcknowledged(at, body, "is acknowledged and not durable");
    this.#toldOf(at.key, at.number);
  }

  /** After a refusal nothing may have changed. */
  rejected(body: string): void {
    this.#rejected.push(body);
  }

  outcome(at: JournalLocation, outcome: RoundOutcome): void {
    this.figures.outcomes++;
    this.#world.note("outcome", short(at.key), `#${at.number}`, outcome.status);
    const ending = endingOf(this.disk.entriesOf(at.key), at.number);
    const expected = ending === undefined ? undefined : outcomeOf(ending.entry);
    if (difference(expected, outcome) !== undefined) {
      this.#violate(
        `message ${at.number} of ${short(at.key)} was told ${show(outcome)}, the journal says ${show(expected)}`,
      );
    }
    if (ending !== undefined) this.#toldOf(at.key, ending.number);
  }

  published(note: CommitNotification): void {
    this.figures.streamed += note.entries.length;
    const before = this.#published.get(note.key);
    if (before !== undefined && note.first !== before + 1) {
      this.#violate(`streamed ${note.first} of ${short(note.key)} after ${before}`);
    }
    this.#published.set(note.key, note.first + note.entries.length - 1);
    for (const [index, entry] of note.entries.entries()) this.streamed(note.key, note.first + index, entry);
  }

  streamed(key: JournalKey, number: number, entry: Entry): void {
    const stored = this.disk.entriesOf(key)[number - 1];
    if (stored === undefined) this.#violate(`streamed ${number} of ${short(key)}, which is not durable`);
    else if (difference(stored, entry) !== undefined) {
      this.#violate(
        `streamed ${number} of ${short(key)} as ${show(entry)}, the journal says ${show(stored)}`,
      );
    }
    this.#toldOf(key, number);
  }

  /** A streamed part of an answer was published: the mail that it answers must be durable. */
  delta(key: JournalKey, messageIds: readonly string[]): void {
    for (const id of messageIds) {
      if (!this.account(key).messages.has(id))
        this.#violate(`a delta for message ${id}, which is not durable`);
    }
  }

  /** The number that a read must include if it starts now. */
  toldNumber(key: JournalKey): number {
    return this.account(key).told;
  }

  /** Called by the reader, with the state at that moment. */
  read(key: JournalKey, state: TaskState, atLeast: number): void {
    this.figures.reads++;
    const { number } = state;
    if (this.#world.tracing) this.#world.note("read", short(key), `#${number}`);
    const entries = this.disk.entriesOf(key);
    if (number > entries.length) this.#violate(`read ${number} of ${short(key)}, which is not durable`);
    else if (number < atLeast) this.#violate(`read ${number} of ${short(key)} after ${atLeast} was told`);
    else {
      const found = difference(fold(entries.slice(0, number)), state);
      if (found !== undefined) this.#violate(`${short(key)} at ${number} differs from its journal: ${found}`);
    }
    this.#toldOf(key, number);
  }

  /** Checks a summary of a task. */
  figuresOf(key: JournalKey, figures: TaskStats, atLeast: number): void {
    const { number } = figures;
    this.#world.note("look", short(key), `#${number}`, figures.status);
    const entries = this.disk.entriesOf(key);
    const state = fold(entries.slice(0, number));
    if (number > entries.length) this.#violate(`told of ${number} of ${short(key)}, which is not durable`);
    else if (number < atLeast) this.#violate(`told of ${number} of ${short(key)} after ${atLeast}`);
    else if (state !== undefined) {
      const { status, ending, error, held, updatedAt } = state;
      const { openWork, ...rest } = figures;
      const found = difference({ number, status, ending, error, held, updatedAt }, rest);
      if (found !== undefined) this.#violate(`the summary of ${short(key)} at ${number} is wrong: ${found}`);
      if (openWork !== hasOpenWork(state)) this.#violate(`open work of ${short(key)} is ${openWork}`);
    }
    this.#toldOf(key, number);
  }

  /**
   * A refusal must depend on a durable state: some state since the request must give the same refusal. Time only adds
   * refusals (an approval expires), so the latest time that the process has seen gives all of them.
   */
  refusal(
    life: Life,
    key: JournalKey,
    command: Command,
    { code, rules, from }: { readonly code: string; readonly rules: SwarmRules; readonly from: number },
  ): void {
    this.figures.refusals++;
    this.#world.note("refused", short(key), command.type, code);
    const entries = this.disk.entriesOf(key);
    for (let last = Math.max(1, Math.min(from, entries.length)); last <= entries.length; last++) {
      const state = fold(entries.slice(0, last));
      if (state === undefined) continue;
      const decision = decide(state, command, rules, { at: life.latestTime, timestamp: "", id: () => "" });
      if (!decision.ok && decision.refusal.code === code) return;
    }
    this.#violate(`'${command.type}' of ${short(key)} was refused as ${code}, which the journal never said`);
  }

  lent(lending: LentMessage): void {
    this.figures.lendings++;
    const { key, agent, attempt } = lending;
    this.#world.note("lent", short(key), agent, attempt);
    if (!this.account(key).lendings.has(`${agent} ${attempt}`)) {
      this.#violate(`lending ${attempt} of ${short(key)} to ${agent} is not durable`);
    }
  }

  // --- turns and actions

  turnBegins(life: Life, turn: Turn, mayRunAhead: boolean): void {
    this.figures.turns++;
    if (life.closed) this.#violate(`a turn of ${turn.agent} begins after the process was closed`);
    if (life.degraded) this.#violate(`a turn of ${turn.agent} begins while nothing can be written`);
    const { key } = turn.task;
    const { messages } = this.account(key);
    const undurable = turn.messages.find(({ id }) => !messages.has(id));
    if (this.#world.tracing) {
      const mail = turn.messages.map(({ id }) => `#${messages.get(id) ?? `? ${short(id)}`}`);
      this.#world.note("turn", short(key), turn.agent, `attempt ${turn.attempt}`, "with", mail.join());
    }
    if (undurable !== undefined) {
      this.figures.turnsAhead++;
      if (!mayRunAhead) this.#violate(`turn of ${turn.agent} on mail ${undurable.id}, which is not durable`);
    }
    for (const { id } of turn.messages) {
      if (this.#handedIn.get(mailName(turn, id)) === this.#circumstances(life, key)) {
        this.#violate(`a second turn of ${turn.agent} for mail ${id}, whose answer was handed in`);
      }
    }
    for (const item of turn.history) {
      if (item.kind !== "message" || !isFromPerson(item.message)) continue;
      const { body } = item.message.message;
      if (!body.startsWith(`${turn.instance.id}:`)) this.#violate(`${turn.instance.id} sees '${body}'`);
    }
  }

  answerHandedIn(life: Life, turn: Turn): void {
    if (!life.alive || life.closed || turn.signal.aborted) return;
    this.#world.note("answer", short(turn.task.key), turn.agent, "to", short(turn.messages[0].id));
    const now = this.#circumstances(life, turn.task.key);
    for (const { id } of turn.messages) this.#handedIn.set(mailName(turn, id), now);
  }

  /** The events after which a turn may run again. */
  #circumstances(life: Life, key: JournalKey): string {
    return `${life.number} ${this.account(key).refusals} ${this.redefinitions}`;
  }

  actionBegins(life: Life, token: number, context: ActionContext, idempotent: boolean): void {
    this.figures.actions++;
    if (life.closed) this.#violate(`call ${token} begins after the process was closed`);
    const {
      idempotencyKey,
      task: { key },
    } = context;
    this.#world.note("act", short(key), `call ${token}`, `attempt ${context.attempt}`, idempotencyKey);
    const call = this.#calls.get(token);
    if (call === undefined || call.key !== key || call.attempt !== context.attempt) {
      this.#violate(`call ${token} begins attempt ${context.attempt} before its start is durable`);
    } else {
      if (call.finished) this.#violate(`call ${token} begins after its result is durable`);
      const { stoppedAt } = this.account(key);
      if (stoppedAt > call.startedAt) {
        this.#violate(`call ${token} begins after its task was stopped (number ${stoppedAt})`);
      }
    }
    const run = this.#runs.get(token) ?? { begun: 0, idempotencyKey, known: undefined };
    this.#runs.set(token, run);
    run.begun++;
    if (run.begun > (idempotent ? 3 : 1)) this.#violate(`call ${token} was carried out ${run.begun} times`);
    if (run.known?.life === life) this.#violate(`call ${token} begins although its result is known`);
    if (run.idempotencyKey !== idempotencyKey) this.#violate(`call ${token} changed its idempotency key`);
    const other = this.#tokenOfKey.get(idempotencyKey);
    if (other !== undefined && other !== token) {
      this.#violate(`calls ${other} and ${token} share the idempotency key '${idempotencyKey}'`);
    }
    this.#tokenOfKey.set(idempotencyKey, token);
  }

  actionEnds(life: Life, token: number, context: ActionContext, content: string): void {
    if (!life.alive || life.closed || context.signal.aborted) return;
    this.#world.note("acted", short(context.task.key), `call ${token}`);
    const run = this.#runs.get(token);
    if (run !== undefined) run.known = { life, content };
  }

  // --- final checks

  finish(rules: SwarmRules): void {
    for (const { at, body, awaited } of this.#acknowledged) {
      this.#checkAcknowledged(at, body, "was acknowledged and is lost");
      const isThere = this.disk.journals.has(at.key);
      if (awaited && isThere && endingOf(this.disk.entriesOf(at.key), at.number) === undefined) {
        this.#violate(`message ${at.number} of ${short(at.key)} came to nothing`);
      }
    }
    for (const body of this.#rejected) {
      if (this.#bodies.has(body)) this.#violate(`'${body}' was refused and is in the journal`);
    }
    for (const [body, count] of this.#bodies) {
      if (count > 1) this.#violate(`'${body}' is in the journal ${count} times`);
    }
    for (const { name, key, number } of this.disk.names.values()) {
      const entry = this.disk.entriesOf(key)[number - 1];
      if (entry?.t !== "sent") this.#violate(`'${name}' says number ${number}, which is no message`);
    }
    for (const key of this.#accounts.keys()) this.#checkJournal(key, rules);
  }

  #checkJournal(key: JournalKey, rules: SwarmRules): void {
    const entries = this.disk.entriesOf(key);
    const problems = problemsOf(entries);
    if (problems.length > 0) this.#violate(problems.join("; "));
    try {
      const ledger = new MailTracker();
      ledger.add(entries);
      roundsEndOnce(entries);
      onlyCommTargetsAreReached(entries, rules);
      // A refused message is retried, so it may follow messages that were posted after it.
      const state = this.account(key).refusals === 0 ? foldInOrder(entries) : fold(entries);
      if (state === undefined) return;
      ledger.agreesWith(state);
      mailboxesAreInOrder(state);
      callsHaveOneResult(state);
      const row = this.disk.tasks.get(key);
      if (row === undefined) return;
      const { held = false, openWork = false } = row;
      if (held !== (state.held !== undefined) || openWork !== hasOpenWork(state)) {
        this.#violate(`the row of ${short(key)} says held ${held}, open work ${openWork}`);
      }
    } catch (error) {
      this.#violate(`${short(key)}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #checkAcknowledged(at: JournalLocation, body: string | undefined, broken: string): void {
    const entry = this.disk.entriesOf(at.key)[at.number - 1];
    if (body === undefined) {
      if (entry === undefined) this.#violate(`number ${at.number} of ${short(at.key)} ${broken}`);
      return;
    }
    if (entry?.t === "sent" && entry.message.id === at.messageId && entry.message.message.body === body)
      return;
    this.#violate(`message ${at.number} of ${short(at.key)} ${broken}`);
  }

  account(key: JournalKey): Account {
    let account = this.#accounts.get(key);
    if (account === undefined) {
      account = {
        status: undefined,
        calls: new Map(),
        approvals: new Map(),
        stoppedAt: 0,
        messages: new Map(),
        lendings: new Set(),
        told: 0,
        refusals: 0,
        deathsAt: new Map(),
        recoveredIn: new Map(),
      };
      this.#accounts.set(key, account);
    }
    return account;
  }

  #toldOf(key: JournalKey, number: number): void {
    const account = this.account(key);
    if (number > account.told) account.told = number;
  }

  #violate(what: string): void {
    this.#world.violate(what);
  }
}

/**
 * The outcome of a message: an ending releases the waiters whose message an agent has taken. A cancellation empties every
 * mailbox and a held task takes no mail, so these release all waiters. Implemented independently, because the code under
 * test must not verify itself.
 */
function endingOf(
  entries: readonly Entry[],
  number: number,
): { readonly number: number; readonly entry: Entry } | undefined {
  const first = entries[number - 1];
  let taken = first !== undefined && (first.t !== "sent" || first.to.length === 0);
  for (let at = number; at <= entries.length; at++) {
    const entry = entries[at - 1];
    if (entry === undefined) break;
    if (entry.t === "turn" || entry.t === "turn_failed") taken ||= entry.took.includes(number);
    if (entry.t === "cancelled") return { number: at, entry };
    if (entry.t === "paused" && entry.reason !== undefined) return { number: at, entry };
    if (taken && (entry.t === "completed" || entry.t === "failed" || entry.t === "paused")) {
      return { number: at, entry };
    }
  }
  return undefined;
}

/** Whether a task that does not run has running work, which a new process must continue. */
function hasOpenWork(state: TaskState): boolean {
  if (state.status === "running") return false;
  const isActing = [...state.agents.values()].some(
    ({ turn }) =>
      (turn?.running.length ?? 0) > 0 || turn?.asked.some(({ expires }) => expires !== undefined) === true,
  );
  return isActing || state.outbound.length > 0;
}

/** Folds a journal and checks each turn: no waiting mail with higher precedence may have been skipped. */
function foldInOrder(entries: readonly Entry[]): TaskState | undefined {
  const [first, ...rest] = entries;
  if (first === undefined) return undefined;
  const state = fold([first]);
  if (state === undefined) return undefined;
  for (const entry of rest) {
    if (entry.t === "turn" && !state.manual) checkTaken(state, entry.agent, entry.took);
    evolve(state, entry);
  }
  return state;
}

function checkTaken(state: TaskState, agent: string, took: readonly number[]): void {
  const mailbox = state.agents.get(agent)?.mailbox ?? [];
  const [first] = took;
  const taken = mailbox.find((mail) => mail.number === first);
  // The turn with the notice of the step limit comes before all others, and may end after its round.
  if (taken === undefined || taken.message.message.subject === SYSTEM_SUBJECTS.maximumStepsReached) return;
  for (const mail of mailbox) {
    const wasThere = mail.number < taken.number && mail.order === mail.number;
    if (wasThere && taken.order === taken.number && comesBefore(mail, taken)) {
      throw new Error(`${agent} took ${taken.number} although ${mail.number} goes first`);
    }
  }
}

/** Where the JSON forms of two values differ. Undefined if they are equal. */
function difference(one: unknown, other: unknown, path = ""): string | undefined {
  if (one === other) return undefined;
  if (one instanceof Map && other instanceof Map) return difference([...one], [...other], path);
  if (one instanceof Set && other instanceof Set) return difference([...one], [...other], path);
  if (Array.isArray(one) && Array.isArray(other)) {
    if (one.length !== other.length) return `${path} has ${one.length} and ${other.length} items`;
    for (let at = 0; at < one.length; at++) {
      const found = difference(one[at], other[at], `${path}/${at}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (!isRecord(one) || !isRecord(other)) return `${path} is ${show(one)} and ${show(other)}`;
  for (const name in one) {
    const found = difference(one[name], other[name], `${path}/${name}`);
    if (found !== undefined) return found;
  }
  for (const name in other) {
    if (other[name] !== undefined && one[name] === undefined) return `${path}/${name} is missing`;
  }
  return undefined;
}

function mailName(turn: Turn, messageId: string): string {
  return `${turn.task.key} ${turn.agent} ${messageId}`;
}

export function short(key: JournalKey): string {
  return key.slice(-3);
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, 200);
}

function describeEntry(entry: Entry): string {
  switch (entry.t) {
    case "sent":
      return `sent ${entry.message.msg_type} to ${entry.to.join()} ${entry.message.message.subject}`;
    case "turn":
      return `turn ${entry.agent} took ${entry.took.join()}: ${entry.calls.map(({ name }) => name).join()}`;
    case "turn_failed":
      return `turn_failed ${entry.agent} took ${entry.took.join()}: ${entry.message.slice(0, 60)}`;
    case "action_started":
      return `action_started ${entry.agent} ${entry.name} ${entry.call} attempt ${entry.attempt}`;
    case "action_finished":
      return `action_finished ${entry.agent} ${entry.call} ${entry.content.slice(0, 60)}`;
    case "failed":
      return `failed ${entry.code}`;
    default:
      return entry.t;
  }
}
