/**
 * A task without a runtime: commands go straight to the engine, and all invariants are checked after each of them.
 */

import type { Ids } from "../../src/base/index.js";
import type { TurnResult } from "../../src/engine/agent.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { InstanceId } from "../../src/engine/ports.js";
import type {
  Command,
  Decision,
  DecisionContext,
  Refusal,
  RefusalCode,
} from "../../src/engine/task/commands.js";
import { decide, openTask } from "../../src/engine/task/decide.js";
import type { Entry, EntryKind, ManualReply } from "../../src/engine/task/entries.js";
import { evolve, fold } from "../../src/engine/task/evolve.js";
import type { EngineLimits, SwarmRules } from "../../src/engine/task/rules.js";
import { freeze, thaw } from "../../src/engine/task/snapshot.js";
import type { AgentState, TaskState } from "../../src/engine/task/state.js";
import type { BudgetLimits } from "../../src/engine/usage.js";
import { createAgentAddress } from "../../src/mail/address.js";
import { buildBroadcast, buildInterrupt, buildRequest } from "../../src/mail/build.js";
import type { MAILAddress, MAILMessage } from "../../src/mail/message.js";
import { seededIds } from "../../src/testing/seeded-ids.js";
import { EPOCH } from "../../src/testing/virtual-clock.js";
import { answerOf, type PlannedCall } from "./answers.js";
import {
  callsHaveOneResult,
  MailTracker,
  mailboxesAreInOrder,
  onlyCommTargetsAreReached,
  roundsEndOnce,
} from "./invariants.js";
import { problemsOf } from "./published-schemas.js";
import { rulesFor, SWARM } from "./swarms.js";

export interface TestTaskOptions {
  readonly limits?: Partial<EngineLimits>;
  readonly instance?: InstanceId;
  /** Default: the instance. */
  readonly owner?: string;
  readonly maxSteps?: number | null;
  readonly manual?: boolean;
  readonly type?: "request" | "broadcast" | "interrupt";
  readonly to?: readonly string[];
  readonly body?: string;
  readonly budget?: BudgetLimits;
}

export interface PostOptions {
  readonly type?: "request" | "broadcast" | "interrupt";
  readonly to?: readonly string[];
  readonly sender?: MAILAddress;
  readonly resumeFrom?: "user_response";
  readonly maxSteps?: number | null;
  readonly contributors?: readonly string[];
}

export class TestTask {
  readonly entries: Entry[] = [];
  readonly ids: Ids = seededIds(0);
  rules: SwarmRules;
  state: TaskState;
  at = EPOCH;
  readonly #limits: Partial<EngineLimits>;
  readonly #ledger = new MailTracker();
  /** State rebuilt from the journal. */
  #replayed: TaskState;

  constructor(definition: SwarmDefinition, options: TestTaskOptions = {}) {
    this.#limits = options.limits ?? {};
    this.rules = rulesFor(definition, this.#limits);
    const instance = options.instance ?? { role: "user", id: "ulla" };
    const owner = options.owner ?? `${instance.role}:${instance.id}@${SWARM}`;
    const taskId = this.ids.uuid();
    const { message, to } = this.#message(taskId, this.rules.entrypoint, options.body ?? "do it", options);
    const decision = openTask(
      {
        type: "open",
        task: {
          key: this.ids.ordered(),
          instance,
          taskId,
          swarm: SWARM,
          owner,
          contributors: [owner],
          entrypoint: this.rules.entrypoint,
          ...(options.maxSteps !== undefined && { maxSteps: options.maxSteps }),
          ...(options.manual === true && { manual: true as const }),
          ...(options.budget !== undefined && { budget: options.budget }),
        },
        message,
        to,
      },
      this.rules,
      this.#moment(),
    );
    if (!decision.ok) throw new Error(`the task was not opened: ${decision.refusal.message}`);
    this.state = decision.state;
    const replayed = fold(readBack(decision.entries));
    if (replayed === undefined) throw new Error("the task was opened without an entry");
    this.#replayed = replayed;
    this.#check(decision.entries);
  }

  /** Applies a command that must succeed. Returns the new entries. */
  do(command: Command): readonly Entry[] {
    const decision = this.try(command);
    if (!decision.ok) throw new Error(`'${command.type}' was refused: ${decision.refusal.message}`);
    return decision.entries;
  }

  /** Applies a command that must be refused. */
  refused(command: Command): Refusal {
    const decision = this.try(command);
    if (decision.ok) throw new Error(`'${command.type}' was not refused`);
    return decision.refusal;
  }

  refusalCode(command: Command): RefusalCode {
    return this.refused(command).code;
  }

  try(command: Command): Decision {
    const before = [...freeze(this.state)];
    const decision = decide(this.state, command, this.rules, this.#moment());
    if (!decision.ok) {
      if (JSON.stringify([...freeze(this.state)]) !== JSON.stringify(before))
        throw new Error(`the refused '${command.type}' changed the task`);
      return decision;
    }
    const entries = readBack(decision.entries);
    const thawed = thaw(before);
    if (thawed === undefined) throw new Error("the snapshot cannot be read back");
    for (const entry of entries) {
      evolve(this.#replayed, entry);
      evolve(thawed, entry);
    }
    assertSame("the state from a snapshot and the entries after it", thawed, this.state);
    this.#check(decision.entries);
    return decision;
  }

  post(body: string, options: PostOptions = {}): readonly Entry[] {
    return this.do(this.postCommand(body, options));
  }

  postCommand(body: string, options: PostOptions = {}): Extract<Command, { type: "post" }> {
    const { message, to } = this.#message(this.state.taskId, this.state.entrypoint, body, options);
    return {
      type: "post",
      message,
      to,
      ...(options.resumeFrom !== undefined && { resumeFrom: options.resumeFrom }),
      ...(options.maxSteps !== undefined && { maxSteps: options.maxSteps }),
      ...(options.contributors !== undefined && { contributors: options.contributors }),
    };
  }

  /** Runs a turn: the agent takes the head of its mailbox and answers with these calls. */
  turn(agent: string, ...calls: readonly PlannedCall[]): readonly Entry[] {
    return this.answer(
      agent,
      answerOf(calls, () => this.ids.uuid()),
    );
  }

  answer(agent: string, answer: TurnResult): readonly Entry[] {
    return this.do({ type: "answer", agent, took: [this.head(agent)], answer });
  }

  say(agent: string, text: string): readonly Entry[] {
    return this.answer(agent, { text, calls: [] });
  }

  failTurn(agent: string, message = "it broke"): readonly Entry[] {
    return this.do({ type: "fail_turn", agent, took: [this.head(agent)], code: "agent_error", message });
  }

  /** Finishes the action that the agent started first, or the one with this name. */
  finish(agent: string, content = "done", ok = true, name?: string): readonly Entry[] {
    const running = this.agent(agent).turn?.running.find(
      ({ call }) => name === undefined || call.name === name,
    );
    if (running === undefined) throw new Error(`agent '${agent}' runs no action`);
    return this.do({ type: "finish_action", agent, callId: running.call.id, ok, content });
  }

  cancel(): readonly Entry[] {
    return this.do({ type: "cancel", by: this.state.owner });
  }

  manualStep(agent: string, payload: string, reply: ManualReply): readonly Entry[] {
    return this.do({ type: "manual_step", agent, payload, reply });
  }

  /** Replaces the swarm's definition. */
  redefine(definition: SwarmDefinition): readonly Entry[] {
    this.rules = rulesFor(definition, this.#limits);
    return this.do({ type: "redefine" });
  }

  agent(name: string): AgentState {
    const agent = this.state.agents.get(name);
    if (agent === undefined) throw new Error(`agent '${name}' is not in the task`);
    return agent;
  }

  head(agent: string): number {
    const head = this.state.agents.get(agent)?.mailbox[0];
    if (head === undefined) throw new Error(`no mail waits for agent '${agent}'`);
    return head.number;
  }

  /** Subjects and bodies in an agent's mailbox, in order. */
  waiting(agent: string): string[] {
    return (this.state.agents.get(agent)?.mailbox ?? []).map(({ message }) => brief(message));
  }

  /** Contents of the results in an agent's history. */
  results(agent: string): string[] {
    return this.agent(agent).history.flatMap((item) =>
      item.kind === "result" ? [`${item.ok ? "ok" : "error"} ${item.name}: ${item.content}`] : [],
    );
  }

  kinds(entries: readonly Entry[] = this.entries): EntryKind[] {
    return entries.map((entry) => entry.t);
  }

  #moment(): DecisionContext {
    return { at: this.at, timestamp: new Date(this.at).toISOString(), id: () => this.ids.uuid() };
  }

  #message(
    taskId: string,
    entrypoint: string,
    body: string,
    options: PostOptions,
  ): { message: MAILMessage; to: readonly string[] } {
    const common = {
      id: this.ids.uuid(),
      timestamp: new Date(this.at).toISOString(),
      taskId,
      sender: options.sender ?? ({ address_type: "user", address: "ulla" } as const),
      subject: "task",
      body,
    };
    switch (options.type ?? "request") {
      case "request": {
        const [to = entrypoint] = options.to ?? [];
        return { message: buildRequest({ ...common, recipient: createAgentAddress(to) }), to: [to] };
      }
      case "interrupt": {
        const to = options.to ?? [entrypoint];
        return { message: buildInterrupt({ ...common, recipients: to.map(createAgentAddress) }), to };
      }
      case "broadcast":
        return { message: buildBroadcast(common), to: options.to ?? [...this.rules.agents.keys()] };
    }
  }

  #check(entries: readonly Entry[]): void {
    this.entries.push(...entries);
    const problems = problemsOf(readBack(entries));
    if (problems.length > 0) throw new Error(`invalid by the published schemas: ${problems.join("; ")}`);
    assertSame("the state rebuilt from the journal", this.#replayed, this.state);
    this.#ledger.add(entries);
    this.#ledger.agreesWith(this.state);
    mailboxesAreInOrder(this.state);
    callsHaveOneResult(this.state);
    onlyCommTargetsAreReached(entries, this.rules, this.entries);
    roundsEndOnce(this.entries);
  }
}

function brief(message: MAILMessage): string {
  return `${message.message.subject}: ${message.message.body}`;
}

/** Compares two states; an undefined field equals a missing one. */
function assertSame(what: string, replayed: TaskState, state: TaskState): void {
  const [one, other] = [canonical(replayed), canonical(state)];
  if (one !== other) throw new Error(`${what} differs:\n${one}\n${other}`);
}

function canonical(state: TaskState): string {
  return JSON.stringify(state, (_, value: unknown) => {
    if (value instanceof Map) return [...value];
    if (value instanceof Set) return [...value];
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function readBack(entries: readonly Entry[]): Entry[] {
  return JSON.parse(JSON.stringify(entries));
}
