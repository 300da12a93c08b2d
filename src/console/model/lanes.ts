/**
 * The lanes of a task: one column for each party, one row for each entry that is drawn, in the order of the journal.
 *
 * `extend` adds rows in time proportional to the new entries. A row never moves or changes its place afterwards; only
 * spans that were open get their end.
 */
import { partyOf, type Sent } from "../../engine/pure.js";
import {
  isInterswarmAddress,
  isSystemSubject,
  type MAILAddress,
  parseAgentAddress,
  recipientsOf,
  SYSTEM_SUBJECTS,
} from "../../mail/pure.js";
import type { JournalEntry } from "./journal-entry.js";
import { subjectText } from "./mail-words.js";
import { describeCall, duration, firstLine, plainLine, short } from "./words.js";

export type LaneKind = "person" | "agent" | "foreign";

export interface Lane {
  /** `user:ann`, `lead`, `security@vendor` */
  readonly id: string;
  readonly kind: LaneKind;
  /** Without the swarm's name. */
  readonly name: string;
  readonly swarm: string | undefined;
  /** For the color: the how-many-th agent it is. */
  readonly color: number;
  turns: number;
  failed: number;
  tokens: number;
}

export type MessageStyle = "request" | "response" | "broadcast" | "interrupt" | "completion" | "answer";
export type Tone = "neutral" | "wait" | "good" | "bad" | "accent";

export type Drawing =
  | {
      readonly kind: "message";
      readonly style: MessageStyle;
      readonly from: string;
      readonly to: readonly string[];
      readonly label: string;
      readonly manual: boolean;
    }
  | {
      readonly kind: "turn";
      readonly lane: string;
      readonly span: number;
      readonly label: string;
      readonly failed: boolean;
      readonly hollow: boolean;
    }
  | { readonly kind: "action"; readonly lane: string; readonly span: number; readonly label: string }
  | {
      readonly kind: "action-end";
      readonly lane: string;
      readonly span: number;
      readonly label: string;
      readonly outcome: "ok" | "failed" | "unknown";
    }
  /** Small text on one lane. */
  | {
      readonly kind: "mark";
      readonly lane: string;
      readonly label: string;
      readonly tone: Tone;
      readonly shape: "dot" | "hollow" | "zigzag" | "bracket" | "none";
    }
  /** A band or a line over all lanes. */
  | { readonly kind: "band"; readonly label: string; readonly tone: Tone; readonly line: boolean }
  | { readonly kind: "note"; readonly label: string; readonly tone: Tone };

export interface Row {
  readonly n: number;
  readonly at: number;
  /** Milliseconds since the row before. */
  readonly gap: number;
  readonly drawing: Drawing;
}

/** A bar on a lane, from a row to a row. */
export interface Span {
  readonly kind: "turn" | "action";
  readonly lane: string;
  readonly from: number;
  /** The row until which the mail waited because the agent was busy. */
  readonly queued: number | undefined;
  to: number | undefined;
  outcome: "ok" | "failed" | "unknown" | undefined;
  readonly startedAt: number;
  /** Actions of one agent that run at the same time are drawn side by side. */
  readonly track: number;
}

/** What another swarm tells of its work on a message. */
const REMOTE: Readonly<Partial<Record<string, string>>> = {
  new_message: "sends mail",
  tool_call: "calls a tool",
  task_complete_call: "completes",
  task_complete: "has ended",
  interswarm_message: "mail from here",
  action_call: "calls an action",
  action_complete: "an action has finished",
};

/** Rows of one block of the interval index. */
export const BLOCK = 1024;

interface Work {
  /** Row and time at which the agent last finished something. */
  row: number;
  at: number;
}

export interface LanesModel {
  readonly lanes: readonly Lane[];
  readonly rows: readonly Row[];
  readonly spans: readonly Span[];
  /** Spans that have no end yet, by their index. */
  readonly open: ReadonlySet<number>;
  /** The number of the last entry that was taken in. */
  readonly last: number;
  /** The row of an entry, or of the last drawn entry before it. */
  rowAt(n: number): number;
  /** Indexes of spans that touch the rows of a block. */
  spansIn(block: number): readonly number[];
  laneOf(id: string): Lane | undefined;
  extend(entries: readonly JournalEntry[]): void;
}

export interface LanesContext {
  /** `user:ann`; taken from the first entry when that is here. */
  readonly owner?: string;
  readonly swarm?: string;
}

export function lanesOf(entries: readonly JournalEntry[] = [], context: LanesContext = {}): LanesModel {
  const model = new Lanes(context);
  model.extend(entries);
  return model;
}

class Lanes implements LanesModel {
  readonly rows: Row[] = [];
  readonly spans: Span[] = [];
  readonly open = new Set<number>();
  last = 0;
  #lanes: Lane[] = [];
  readonly #byId = new Map<string, Lane>();
  readonly #blocks = new Map<number, number[]>();
  /** Sorted numbers of the rows, for `rowAt`. */
  readonly #numbers: number[] = [];
  readonly #work = new Map<string, Work>();
  readonly #mail = new Map<number, { row: number; at: number }>();
  /** By agent and call. */
  readonly #actions = new Map<string, number>();
  readonly #calls = new Map<string, string>();
  #agents = 0;
  #owner: string | undefined;
  #swarm: string | undefined;
  #before: JournalEntry["t"] | undefined;

  constructor({ owner, swarm }: LanesContext) {
    this.#owner = owner;
    this.#swarm = swarm;
    if (owner !== undefined) this.#lane(owner, true);
  }

  get lanes(): readonly Lane[] {
    return this.#lanes;
  }

  laneOf(id: string): Lane | undefined {
    return this.#byId.get(id);
  }

  rowAt(n: number): number {
    let low = 0;
    let high = this.#numbers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#numbers[middle] ?? 0) <= n) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  spansIn(block: number): readonly number[] {
    return this.#blocks.get(block) ?? [];
  }

  extend(entries: readonly JournalEntry[]): void {
    for (const entry of entries) {
      if (entry.n <= this.last) continue;
      this.last = entry.n;
      this.#take(entry);
      this.#before = entry.t;
    }
  }

  #take(entry: JournalEntry): void {
    switch (entry.t) {
      case "opened": {
        this.#swarm = entry.task.swarm;
        this.#owner = `${entry.task.instance.role}:${entry.task.instance.id}`;
        this.#lane(this.#owner, true);
        this.#lane(entry.task.entrypoint);
        return;
      }
      case "sent":
        return this.#sent(entry);
      case "turn": {
        const usage = entry.usage;
        const tokens = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
        for (const call of entry.calls) this.#calls.set(`${entry.agent}\n${call.id}`, describeCall(call));
        const words = [
          usage?.inputTokens === undefined && usage?.outputTokens === undefined
            ? undefined
            : `${short(usage.inputTokens ?? 0)}→${short(usage.outputTokens ?? 0)}`,
        ];
        const hollow = entry.calls.some(({ name }) => name === "await_message");
        this.#turn(entry, words, false, hollow);
        const lane = this.#lane(entry.agent);
        lane.turns++;
        lane.tokens += tokens;
        return;
      }
      case "turn_failed": {
        this.#turn(entry, [`✗ ${firstLine(entry.message)}`], true, false);
        const lane = this.#lane(entry.agent);
        lane.turns++;
        lane.failed++;
        return;
      }
      case "result": {
        this.#finished(entry.agent, entry.at);
        if (entry.breakpoint === true && entry.ok) {
          const from = this.#lane(this.#owner ?? "person", true).id;
          this.#row(entry, {
            kind: "message",
            style: "answer",
            from,
            to: [this.#lane(entry.agent).id],
            label: firstLine(entry.content),
            manual: false,
          });
        } else if (!entry.ok) {
          this.#row(entry, {
            kind: "mark",
            lane: this.#lane(entry.agent).id,
            label: `✗ ${entry.name}: ${firstLine(entry.content)}`,
            tone: "bad",
            shape: "none",
          });
        }
        return;
      }
      case "action_started": {
        const label = this.#calls.get(`${entry.agent}\n${entry.call}`) ?? entry.name;
        const lane = this.#lane(entry.agent).id;
        const again = entry.attempt > 1 ? ` · attempt ${entry.attempt}` : "";
        const row = this.rows.length;
        const span = this.#openSpan({
          kind: "action",
          lane,
          from: row,
          queued: undefined,
          to: undefined,
          outcome: undefined,
          startedAt: entry.at,
        });
        this.#actions.set(`${entry.agent}\n${entry.call}`, span);
        this.#row(entry, { kind: "action", lane, span, label: `${label}${again}` });
        return;
      }
      case "action_finished": {
        const key = `${entry.agent}\n${entry.call}`;
        const span = this.#actions.get(key);
        const outcome = entry.unknown === true ? "unknown" : entry.ok ? "ok" : "failed";
        const lane = this.#lane(entry.agent).id;
        const row = this.rows.length;
        const index =
          span ??
          this.#openSpan({
            kind: "action",
            lane,
            from: row,
            queued: undefined,
            to: undefined,
            outcome,
            startedAt: entry.at,
          });
        const started = this.spans[index]?.startedAt ?? entry.at;
        this.#close(index, row, outcome);
        this.#actions.delete(key);
        const time = duration(entry.at - started);
        const label =
          outcome === "ok"
            ? `✓ ${time}`
            : outcome === "unknown"
              ? `? ${time} unknown whether it took effect`
              : `✗ ${time} ${firstLine(entry.content)}`;
        this.#row(entry, { kind: "action-end", lane, span: index, label, outcome });
        this.#finished(entry.agent, entry.at);
        return;
      }
      case "paused": {
        const names = (entry.approvals ?? entry.calls).map((call) => describeCall(call)).join(", ");
        const asks = entry.approvals === undefined ? "asks" : "needs approval of";
        const label =
          entry.reason === undefined
            ? `Paused: ${entry.agent} ${asks} ${this.#owner ?? "a person"} · ${names}`
            : `${entry.limit === undefined ? "On hold" : "Limit reached"}: ${plainLine(entry.message.message.body)}`;
        this.#lane(entry.agent);
        this.#row(entry, { kind: "band", label, tone: "wait", line: false });
        return;
      }
      case "resumed":
        // An answer, which stands right before, says it already.
        if (this.#before !== "result")
          this.#row(entry, { kind: "band", label: "Continued", tone: "accent", line: true });
        return;
      case "completed": {
        const { sender } = entry.message.message;
        const from = entry.call?.agent ?? (sender.address_type === "agent" ? sender.address : undefined);
        if (from === undefined || this.#owner === undefined) {
          this.#row(entry, {
            kind: "band",
            label: `Completed: ${plainLine(entry.message.message.body)}`,
            tone: "good",
            line: true,
          });
        } else {
          this.#row(entry, {
            kind: "message",
            style: "completion",
            from: this.#lane(from).id,
            to: [this.#owner],
            label: plainLine(entry.message.message.body),
            manual: false,
          });
        }
        return;
      }
      case "failed":
        this.#row(entry, {
          kind: "band",
          label: `✗ Failed: ${firstLine(entry.reason)}`,
          tone: "bad",
          line: false,
        });
        return;
      case "cancelled":
        this.#row(entry, { kind: "band", label: `Cancelled by ${entry.by}`, tone: "neutral", line: false });
        return;
      case "carried": {
        const lane = this.#foreignLane(entry.swarm);
        const label = entry.ok
          ? `taken over by ${entry.swarm}`
          : `✗ not delivered: ${firstLine(entry.reason ?? "no reason given")}`;
        this.#row(entry, {
          kind: "mark",
          lane,
          label,
          tone: entry.ok ? "good" : "bad",
          shape: entry.ok ? "hollow" : "dot",
        });
        return;
      }
      case "remote_event":
        this.#row(entry, {
          kind: "mark",
          lane: this.#foreignLane(entry.swarm),
          label: REMOTE[entry.event] ?? entry.event.replaceAll("_", " "),
          tone: "neutral",
          shape: "hollow",
        });
        return;
      case "lent":
        this.#row(entry, {
          kind: "mark",
          lane: this.#lane(entry.agent).id,
          label: `with ${entry.agent}${entry.attempt > 1 ? `, attempt ${entry.attempt}` : ""}`,
          tone: "neutral",
          shape: "bracket",
        });
        return;
      case "released":
        this.#row(entry, {
          kind: "mark",
          lane: this.#lane(entry.agent).id,
          label: "given back",
          tone: "neutral",
          shape: "bracket",
        });
        return;
      case "recovered":
        this.#row(entry, {
          kind: "mark",
          lane: this.#lane(entry.agent).id,
          label: "the server stopped here; started again",
          tone: "wait",
          shape: "zigzag",
        });
        return;
      case "parked":
        this.#row(entry, {
          kind: "mark",
          lane: this.#lane(entry.agent).id,
          label: "the server shut down here",
          tone: "neutral",
          shape: "zigzag",
        });
        return;
      case "step_limit":
        this.#row(entry, { kind: "note", label: "Step limit reached: one turn left", tone: "wait" });
        return;
      case "idle":
        this.#row(entry, { kind: "note", label: "Idle: the entrypoint is notified", tone: "wait" });
        return;
      case "contributed":
        this.#row(entry, {
          kind: "note",
          label: `Takes part: ${entry.contributors.join(", ")}`,
          tone: "neutral",
        });
        return;
      case "approvers":
        this.#row(entry, {
          kind: "note",
          label:
            entry.approvers.length === 0
              ? "Only the owner may answer"
              : `May answer too: ${entry.approvers.join(", ")}`,
          tone: "neutral",
        });
        return;
      case "approval_asked":
        this.#row(entry, { kind: "note", label: `${entry.name} waits for approval`, tone: "wait" });
        return;
      case "approval_answered": {
        const words = [
          `${entry.name} ${entry.decision}${entry.args === undefined ? "" : " with changes"}`,
          ...(entry.by === undefined ? [] : [`by ${entry.by}`]),
          ...(entry.reason === undefined ? [] : [firstLine(entry.reason)]),
        ];
        if (entry.decision === "expired") {
          this.#row(entry, { kind: "note", label: words.join(" · "), tone: "bad" });
          return;
        }
        this.#row(entry, {
          kind: "message",
          style: "answer",
          from: this.#lane(this.#owner ?? "person", true).id,
          to: [this.#lane(entry.agent).id],
          label: words.join(" · "),
          manual: false,
        });
        return;
      }
      case "compacted":
        this.#row(entry, {
          kind: "note",
          label: `Memory of ${entry.agent} summarized up to #${entry.upTo}`,
          tone: "neutral",
        });
        return;
      case "usage":
        // Counted with the turn; the cost view has them.
        return;
      case "budget":
        this.#row(entry, { kind: "note", label: `Budget set by ${entry.by}`, tone: "neutral" });
        return;
      case "redefined":
        this.#row(entry, {
          kind: "note",
          label: `Continues with swarm definition ${entry.definition.slice(0, 10)}`,
          tone: "neutral",
        });
        return;
      default:
        // A newer server may write kinds that this page does not know; the compiler knows of none.
        this.#unknown(entry satisfies never);
    }
  }

  #unknown(entry: JournalEntry): void {
    this.#row(entry, { kind: "note", label: String(entry.t), tone: "neutral" });
  }

  #sent(entry: Sent & { readonly n: number }): void {
    const { message } = entry;
    const { sender, subject, body } = message.message;
    const recipients = this.#recipients(entry);
    const row = this.rows.length;
    if (sender.address_type === "system") {
      const [lane] = recipients;
      const quiet =
        subject === SYSTEM_SUBJECTS.actionComplete || subject === SYSTEM_SUBJECTS.actionCompleteBroadcast;
      this.#mail.set(entry.n, { row: quiet ? row - 1 : row, at: entry.at });
      if (quiet || lane === undefined) return;
      this.#row(entry, { kind: "mark", lane, label: subjectText(subject), tone: "neutral", shape: "dot" });
      return;
    }
    this.#mail.set(entry.n, { row, at: entry.at });
    const from = this.#party(sender);
    const person = sender.address_type !== "agent";
    const style: MessageStyle = message.msg_type === "broadcast_complete" ? "completion" : message.msg_type;
    // Another swarm answers with a notice that its task has ended: its words say more.
    const isAnswer = isSystemSubject(subject) && this.#byId.get(from)?.kind === "foreign";
    const label =
      plainLine(person || isAnswer || subject === "" ? body : subjectText(subject)) || plainLine(subject);
    this.#row(entry, {
      kind: "message",
      style,
      from,
      to: recipients,
      label,
      manual: entry.manual !== undefined,
    });
  }

  #recipients(entry: Sent): string[] {
    const found = entry.to.map((name) => this.#lane(name).id);
    for (const address of recipientsOf(entry.message)) {
      const away = isInterswarmAddress(address.address, this.#swarm ?? "");
      if (address.address_type === "agent" && !away) continue;
      const id = this.#party(address);
      if (!found.includes(id)) found.push(id);
    }
    return found;
  }

  #party(address: MAILAddress): string {
    if (address.address_type !== "agent") return this.#lane(partyOf(address), true).id;
    return this.#lane(localName(address.address, this.#swarm)).id;
  }

  #turn(
    entry: Extract<JournalEntry, { t: "turn" | "turn_failed" }>,
    words: readonly (string | undefined)[],
    failed: boolean,
    hollow: boolean,
  ): void {
    const lane = this.#lane(entry.agent).id;
    const row = this.rows.length;
    let mail = { row: row - 1, at: entry.at };
    for (const n of entry.took) mail = this.#mail.get(n) ?? mail;
    const work = this.#work.get(entry.agent);
    const busy = work !== undefined && work.row > mail.row ? work : undefined;
    const startedAt = Math.max(mail.at, work?.at ?? 0);
    const from = Math.max(0, Math.min(mail.row, row));
    const span = this.#openSpan({
      kind: "turn",
      lane,
      from,
      queued: busy === undefined ? undefined : Math.min(busy.row, row),
      to: undefined,
      outcome: undefined,
      startedAt,
    });
    this.#close(span, row, failed ? "failed" : "ok");
    const label = [duration(Math.max(0, entry.at - startedAt)), ...words]
      .filter((word) => word !== undefined)
      .join(" · ");
    this.#row(entry, { kind: "turn", lane, span, label, failed, hollow });
    this.#finished(entry.agent, entry.at);
  }

  #finished(agent: string, at: number): void {
    this.#work.set(agent, { row: Math.max(0, this.rows.length - 1), at });
  }

  #row(entry: JournalEntry, drawing: Drawing): void {
    const before = this.rows.at(-1);
    this.rows.push({
      n: entry.n,
      at: entry.at,
      gap: before === undefined ? 0 : Math.max(0, entry.at - before.at),
      drawing,
    });
    this.#numbers.push(entry.n);
  }

  #openSpan(span: Omit<Span, "track">): number {
    const index = this.spans.push({ ...span, track: this.#freeTrack(span) }) - 1;
    this.open.add(index);
    return index;
  }

  #freeTrack({ kind, lane }: Omit<Span, "track">): number {
    if (kind === "turn") return 0;
    const taken = new Set<number>();
    for (const index of this.open) {
      const span = this.spans[index];
      if (span?.kind === "action" && span.lane === lane) taken.add(span.track);
    }
    let track = 0;
    while (taken.has(track)) track++;
    return track;
  }

  #close(index: number, row: number, outcome: "ok" | "failed" | "unknown"): void {
    const span = this.spans[index];
    if (span === undefined) return;
    span.to = row;
    span.outcome = outcome;
    this.open.delete(index);
    for (let block = Math.floor(span.from / BLOCK); block <= Math.floor(row / BLOCK); block++) {
      const spans = this.#blocks.get(block);
      if (spans === undefined) this.#blocks.set(block, [index]);
      else spans.push(index);
    }
  }

  /** The lane of any agent of that swarm; the first one that was written to. */
  #foreignLane(swarm: string): string {
    const known = this.#lanes.find((lane) => lane.kind === "foreign" && lane.swarm === swarm);
    return known?.id ?? this.#lane(`@${swarm}`).id;
  }

  #lane(id: string, person = false): Lane {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const { name, swarm } = person ? { name: id, swarm: undefined } : parseAgentAddress(id);
    const kind: LaneKind = person ? "person" : swarm === undefined ? "agent" : "foreign";
    const lane: Lane = {
      id,
      kind,
      name: name === "" ? (swarm ?? "") : name,
      swarm,
      color: kind === "agent" ? this.#agents++ : 0,
      turns: 0,
      failed: 0,
      tokens: 0,
    };
    this.#byId.set(id, lane);
    const order: readonly LaneKind[] = ["person", "agent", "foreign"];
    this.#lanes = [...this.#lanes, lane].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
    return lane;
  }
}

function localName(address: string, swarm: string | undefined): string {
  const parsed = parseAgentAddress(address);
  return parsed.swarm === swarm ? parsed.name : address;
}
