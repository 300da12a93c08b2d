/**
 * Verifies a data directory after any number of kills, from its journals, the side effects of the actions and the
 * acknowledgments of the child. Returns all violations.
 */
import { isDeepStrictEqual } from "node:util";
import type { Store, TaskRow } from "../../src/engine/ports.js";
import { Round } from "../../src/engine/runtime/index.js";
import type { Entry } from "../../src/engine/task/entries.js";
import { evolve, fold } from "../../src/engine/task/evolve.js";
import { freeze, thaw } from "../../src/engine/task/snapshot.js";
import type { TaskState } from "../../src/engine/task/state.js";
import type { JournalRow } from "../../src/journal/index.js";
import { isSnapshotHeader } from "../../src/journal/snapshots.js";
import type { MAILMessage } from "../../src/mail/message.js";
import { checkMailMessage } from "../../src/mail/validate.js";
import type { Acknowledgement } from "./acknowledgements.js";
import type { Effect } from "./effects.js";
import { IDEMPOTENT_ACTIONS } from "./swarm.js";

export interface Verdict {
  readonly violations: readonly string[];
  readonly tasks: number;
  readonly entries: number;
  readonly messages: number;
  readonly actions: number;
  /** How often each kind of entry was written: a run that never paused proves nothing about pauses. */
  readonly kinds: Readonly<Record<string, number>>;
  /** Actions that were running when the process died, except those of ended tasks. */
  readonly unknownOutcomes: number;
  readonly repeatedAttempts: number;
}

interface Evidence {
  readonly acknowledged: readonly Acknowledgement[];
  readonly effects: readonly Effect[];
}

/** A task's journal with its entries at their numbers: entry `n` is at index `n - 1`. */
interface TaskFile {
  readonly row: TaskRow;
  readonly entries: readonly Entry[];
  readonly state: TaskState;
}

export async function verify(store: Store, evidence: Evidence): Promise<Verdict> {
  const violations: string[] = [];
  const files = new Map<string, TaskFile>();
  const kinds: Record<string, number> = {};
  let messages = 0;
  for (const row of await allTasks(store)) {
    const report = (what: string) => violations.push(`task ${row.key}: ${what}`);
    const entries = (await store.read(row.key)).flatMap(entriesOf);
    const state = fold(entries);
    if (state === undefined) {
      report("has no journal");
      continue;
    }
    const file = { row, entries, state };
    files.set(row.key, file);
    for (const { t } of entries) kinds[t] = (kinds[t] ?? 0) + 1;
    messages += checkMessages(file, report);
    checkEnd(file, report);
    checkDeliveries(file, report);
    checkCalls(file, report);
    checkRounds(file, report);
    if (!(await snapshotAgrees(store, file))) report("its snapshot and its journal disagree");
  }
  const posts = new Map<string, number>();
  for (const said of evidence.acknowledged) if (said.ack === "post") posts.set(said.message, said.number);
  for (const acknowledgement of evidence.acknowledged) {
    const lost = checkAcknowledgement(acknowledgement, files, posts);
    if (lost !== undefined) violations.push(lost);
  }
  violations.push(
    ...checkEffects(
      [...files.values()].flatMap(({ entries }) => entries),
      evidence.effects,
    ),
  );
  return {
    violations,
    tasks: files.size,
    entries: Object.values(kinds).reduce((sum, count) => sum + count, 0),
    messages,
    actions: kinds.action_finished ?? 0,
    kinds,
    unknownOutcomes: count(files, isUnknown),
    repeatedAttempts: count(files, (entry) => entry.t === "action_started" && entry.attempt > 1),
  };
}

function entriesOf({ data }: JournalRow): Entry[] {
  return JSON.parse(data);
}

/** A snapshot and the entries after it must give the same state as the whole journal. */
async function snapshotAgrees(store: Store, { row, state }: TaskFile): Promise<boolean> {
  const [stored] = await store.readMany([row.key]);
  if (stored?.snapshot === undefined) return true;
  const { number, parts } = stored.snapshot;
  const loaded = thaw(parts.filter((part) => !isSnapshotHeader(part)));
  if (loaded === undefined) return false;
  for (const stretch of stored.rows) {
    for (const [index, entry] of entriesOf(stretch).entries()) {
      if (stretch.first + index > number) evolve(loaded, entry);
    }
  }
  return isDeepStrictEqual(asText(loaded), asText(state));
}

/** Removes values that JSON cannot represent (fields that are `undefined`). */
function asText(state: TaskState): unknown {
  return [...freeze(state)].map(({ name, data }) => ({ name, data: JSON.parse(data) }));
}

type Report = (what: string) => void;

async function allTasks(store: Store): Promise<TaskRow[]> {
  const rows: TaskRow[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await store.tasks.list({ limit: 500, ...(cursor !== undefined && { cursor }) });
    rows.push(...page.tasks);
    cursor = page.nextCursor;
    if (cursor === undefined) return rows;
  }
}

/** Written messages are valid MAIL (law 9). */
function checkMessages({ entries }: TaskFile, report: Report): number {
  let seen = 0;
  for (const [index, entry] of entries.entries()) {
    if (!("message" in entry) || typeof entry.message === "string") continue;
    seen += 1;
    const checked = checkMailMessage(entry.message);
    if (!checked.ok) report(`the message at ${index + 1} is not valid: ${JSON.stringify(checked.errors)}`);
  }
  return seen;
}

/** No task is stuck and none failed, because no agent of this swarm causes a failure. */
function checkEnd({ row, entries, state }: TaskFile, report: Report): void {
  if (row.status !== state.status) report(`its row says ${row.status}, its journal ${state.status}`);
  if (state.status !== "completed" && state.status !== "cancelled") {
    report(`is ${state.status} at the end: ${JSON.stringify(state.error ?? entries.slice(-3))}`);
  }
  for (const [index, entry] of entries.entries()) {
    if (entry.t === "failed" || entry.t === "turn_failed" || entry.t === "idle") {
      report(`at ${index + 1}: ${JSON.stringify(entry)}`);
    }
  }
  for (const [name, agent] of state.agents) {
    if (agent.turn !== undefined) report(`agent '${name}' still has an unfinished turn`);
    if (agent.open.length > 0) report(`agent '${name}' still waits for a user`);
  }
}

/**
 * Every message was taken once by each of its recipients, was dropped by a cancellation, or is set aside until the ended
 * task is resumed. A user's message is never set aside (decision B6).
 */
function checkDeliveries({ entries, state }: TaskFile, report: Report): void {
  const taken = new Map<string, number>();
  let lastCancellation = 0;
  for (const [index, entry] of entries.entries()) {
    if (entry.t === "cancelled") lastCancellation = index + 1;
    if (entry.t !== "turn" && entry.t !== "turn_failed") continue;
    for (const number of entry.took) {
      const key = `${number} ${entry.agent}`;
      taken.set(key, (taken.get(key) ?? 0) + 1);
    }
  }
  for (const [index, entry] of entries.entries()) {
    if (entry.t !== "sent") continue;
    const number = index + 1;
    for (const agent of entry.to) {
      const times = taken.get(`${number} ${agent}`) ?? 0;
      if (times > 1) report(`'${agent}' took message ${number} ${times} times`);
      if (times > 0 || lastCancellation > number) continue;
      const waits = state.agents.get(agent)?.mailbox.some((mail) => mail.number === number) === true;
      if (!waits) report(`message ${number} never reached '${agent}'`);
      else if (isPersons(entry.message)) report(`a user's message ${number} still waits for '${agent}'`);
    }
  }
}

/** Every tool call has exactly one result (decision B4), and a finished action never starts again (law 4). */
function checkCalls({ entries }: TaskFile, report: Report): void {
  const results = new Map<string, number>();
  const finished = new Set<string>();
  const attempts = new Map<string, number>();
  const approved = new Set<string>();
  for (const entry of entries) {
    if (entry.t === "approval_answered" && entry.decision === "approved") approved.add(entry.call);
    if (entry.t === "action_started") {
      if (finished.has(entry.call)) report(`call ${entry.call} was started again after it had finished`);
      const expected = (attempts.get(entry.call) ?? 0) + 1;
      if (entry.attempt !== expected) report(`call ${entry.call}: attempt ${entry.attempt}, not ${expected}`);
      if (entry.attempt > 1 && !IDEMPOTENT_ACTIONS.has(entry.name)) {
        report(`call ${entry.call} of '${entry.name}' was repeated, although it is not idempotent`);
      }
      attempts.set(entry.call, entry.attempt);
      if (entry.name === "buy" && !approved.has(entry.call)) {
        report(`call ${entry.call} of 'buy' started without approval`);
      }
    }
    if (entry.t === "action_finished") finished.add(entry.call);
    const settled = callSettledBy(entry);
    if (settled !== undefined) results.set(settled, (results.get(settled) ?? 0) + 1);
  }
  for (const entry of entries) {
    if (entry.t !== "turn") continue;
    for (const { id, name } of entry.calls) {
      const times = results.get(id) ?? 0;
      if (times !== 1) report(`call ${id} of '${name}' by '${entry.agent}' has ${times} results`);
    }
  }
}

function callSettledBy(entry: Entry): string | undefined {
  switch (entry.t) {
    case "result":
    case "action_finished":
      return entry.call;
    case "sent":
    case "completed":
      return entry.call?.id;
    default:
      return undefined;
  }
}

/** A round ends once: only a running or paused task can end. */
function checkRounds({ entries }: TaskFile, report: Report): void {
  let status = "";
  for (const [index, entry] of entries.entries()) {
    switch (entry.t) {
      case "opened":
      case "resumed":
        status = "running";
        break;
      case "paused":
        if (status !== "running" && status !== "paused") report(`paused at ${index + 1}, but ${status}`);
        status = "paused";
        break;
      case "completed":
      case "failed":
        if (status !== "running") report(`${entry.t} at ${index + 1}, but ${status} already`);
        status = entry.t;
        break;
      case "cancelled":
        if (status !== "running" && status !== "paused") report(`cancelled at ${index + 1}, but ${status}`);
        status = "cancelled";
        break;
      default:
        break;
    }
  }
}

/** @param posts numbers of the messages that were acknowledged, by their ids */
function checkAcknowledgement(
  said: Acknowledgement,
  files: ReadonlyMap<string, TaskFile>,
  posts: ReadonlyMap<string, number>,
): string | undefined {
  if (isNoClaim(said)) return undefined;
  if (said.ack === "problem") return `the child reported ${said.code} in task ${said.task}: ${said.message}`;
  const file = files.get(said.key);
  if (file === undefined) return `acknowledged, but there is no such task: ${JSON.stringify(said)}`;
  if (said.ack === "outcome") {
    const journaled = outcomeIn(file, posts.get(said.message));
    const told = `${said.status} with ${said.ending}`;
    if (told === journaled) return undefined;
    return `the caller received ${told}, but the journal has ${journaled}: ${JSON.stringify(said)}`;
  }
  return holds(said, file) ? undefined : `acknowledged, but not in the journal: ${JSON.stringify(said)}`;
}

type NoClaim = Extract<Acknowledgement, { ack: "ready" | "caught up" | "turned away" | "failed" | "done" }>;

function isNoClaim(said: Acknowledgement): said is NoClaim {
  return ["ready", "caught up", "turned away", "failed", "done"].includes(said.ack);
}

/** The outcome of a message, by the rule that is also used after a restart. */
function outcomeIn({ entries }: TaskFile, number: number | undefined): string {
  if (number === undefined) return "nothing, because the message was never acknowledged";
  const round = new Round({ number });
  for (const [index, entry] of entries.entries()) {
    const outcome = round.see(index + 1, entry);
    if (outcome !== undefined) return `${outcome.status} with ${outcome.message.id}`;
  }
  return "nothing yet";
}

function holds(
  said: Exclude<Acknowledgement, NoClaim | { ack: "outcome" | "problem" }>,
  { entries }: TaskFile,
): boolean {
  switch (said.ack) {
    case "post": {
      const entry = entries[said.number - 1];
      return entry?.t === "sent" && entry.message.id === said.message;
    }
    case "answered": {
      const after = entries.slice(said.number - 1);
      return said.calls.every((id) =>
        after.some((entry) => entry.t === "result" && entry.call === id && entry.breakpoint === true),
      );
    }
    case "decided": {
      const entry = entries[said.number - 1];
      const decision = said.decision === "approve" ? "approved" : "rejected";
      return entry?.t === "approval_answered" && entry.call === said.call && entry.decision === decision;
    }
    case "cancelled":
      return entries.some((entry) => entry.t === "cancelled");
  }
}

/** Compares side effects with the journals: every run was journaled first, and no run is surplus. */
function checkEffects(entries: readonly Entry[], effects: readonly Effect[]): string[] {
  const violations: string[] = [];
  const started = new Set<string>();
  const begun = new Set<string>();
  const ended = new Set<string>();
  for (const entry of entries) {
    if (entry.t === "action_started") started.add(`${entry.call} ${entry.attempt}`);
  }
  for (const { callId, attempt, phase } of effects) {
    const run = `${callId} ${attempt}`;
    if (phase === "end") {
      ended.add(callId);
      continue;
    }
    if (!started.has(run)) violations.push(`action run ${run} was not journaled before it ran`);
    if (begun.has(run)) violations.push(`action run ${run} happened twice`);
    begun.add(run);
  }
  for (const entry of entries) {
    if (entry.t === "action_finished" && entry.ok && !ended.has(entry.call)) {
      violations.push(`call ${entry.call} of '${entry.name}' is journaled as done, but has no side effect`);
    }
  }
  return violations;
}

function isPersons(message: MAILMessage): boolean {
  const { address_type } = message.message.sender;
  return address_type === "user" || address_type === "admin";
}

function isUnknown(entry: Entry): boolean {
  if (entry.t !== "action_finished" || entry.unknown !== true) return false;
  return !entry.content.includes("the task was cancelled");
}

function count(files: ReadonlyMap<string, TaskFile>, counts: (entry: Entry) => boolean): number {
  let total = 0;
  for (const { entries } of files.values()) total += entries.filter(counts).length;
  return total;
}
