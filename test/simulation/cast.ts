/**
 * The simulated swarm: agents that make random choices with random delays, and actions that are counted. Every call of an
 * action carries a token, so that the oracles can identify it. The ids of calls repeat, as those of model providers do.
 */

import { isRecord } from "../../src/base/index.js";
import {
  type ActionContext,
  type AgentFunction,
  type Turn,
  TurnHeldError,
  type TurnResult,
} from "../../src/engine/agent.js";
import type { AgentDefinition, SwarmDefinition } from "../../src/engine/definition.js";
import {
  acknowledge,
  act,
  ask,
  broadcast,
  complete,
  help,
  interrupt,
  type PlannedCall,
  respond,
  wait,
} from "../kit/answers.js";
import type { Random } from "../kit/seeded.js";
import { action, agent, swarm } from "../kit/swarms.js";
import type { Oracles } from "./oracles.js";
import type { Life, World } from "./world.js";

/** The remote agent. */
export const REMOTE_AGENT = "far";
/** The other swarm, which has a carrier. */
export const OTHER_SWARM = "north";
export const OTHER_AGENT = `chief@${OTHER_SWARM}`;

const ALWAYS = ["boss", "ann"] as const;
/** A redefined swarm may lack one of these. */
const SOMETIMES = ["bob", "cem"] as const;
/** The agent that starts on durable mail only. */
const CAREFUL = "bob";
const ACTIONS = ["pay", "look", "note", "slow", "boom", "sell"] as const;

export interface CastParts {
  readonly world: World;
  readonly oracles: Oracles;
  readonly random: Random;
  readonly mayRunAhead: boolean;
}

export class Cast {
  readonly #world: World;
  readonly #oracles: Oracles;
  readonly #random: Random;
  readonly #mayRunAhead: boolean;
  #tokens = 0;
  #version = 0;
  #missing: string | undefined;

  constructor({ world, oracles, random, mayRunAhead }: CastParts) {
    this.#world = world;
    this.#oracles = oracles;
    this.#random = random;
    this.#mayRunAhead = mayRunAhead;
  }

  /** Removes an agent or adds it again. */
  redefine(): void {
    this.#version++;
    this.#missing = this.#random.pick([undefined, ...SOMETIMES]);
  }

  /** The current definition, as a new process loads it. */
  definition(life: Life): SwarmDefinition {
    return this.#swarm(life, this.#missing);
  }

  /** The definition with all agents. */
  completeDefinition(life: Life): SwarmDefinition {
    return this.#swarm(life, undefined);
  }

  #swarm(life: Life, missing: string | undefined): SwarmDefinition {
    const names = [...ALWAYS, ...SOMETIMES].filter((name) => name !== missing);
    const member = (name: string, supervisor: boolean): AgentDefinition => {
      const run: AgentFunction = (turn) => this.#turn(life, turn);
      const made = agent(name, {
        targets: [...ALWAYS, ...SOMETIMES, REMOTE_AGENT, OTHER_AGENT].filter((other) => other !== name),
        supervisor,
        entrypoint: supervisor,
        interswarm: true,
        actions: [...ACTIONS, "sign"],
        run,
      });
      return name === CAREFUL ? { ...made, implementation: { kind: "local", run, speculate: false } } : made;
    };
    const [first, ...rest] = names.map((name) => member(name, name === "boss" || name === "cem"));
    if (first === undefined) throw new Error("a swarm has at least one agent");
    const remote = agent(REMOTE_AGENT, { targets: ["boss", "ann"], remote: true, actions: ["pay"] });
    return swarm([first, ...rest, remote], {
      actions: [...ACTIONS.map((name) => this.#action(life, name)), action("sign")],
      breakpoints: ["sign"],
      hash: `v${this.#version}`,
    });
  }

  /** The answer of a remote agent. */
  remoteAnswer(): TurnResult {
    if (this.#random.chance(0.1)) return { text: `words ${this.#world.word()}`, calls: [] };
    if (!this.#world.hurried && this.#random.chance(0.2)) return this.#answerWith([this.#call("pay")]);
    return this.#answerWith([respond("boss", `from afar ${this.#world.word()}`)]);
  }

  #turn(life: Life, turn: Turn): TurnResult | Promise<TurnResult> {
    const random = this.#random;
    this.#oracles.turnBegins(life, turn, this.#mayRunAhead && turn.agent !== CAREFUL);
    if (random.chance(0.1)) turn.emitDelta(JSON.stringify(turn.messages.map(({ id }) => id)));
    const answer = (): TurnResult => {
      if (!this.#world.hurried && random.chance(0.05))
        throw new TurnHeldError("credentials", "the key is not at hand");
      this.#oracles.answerHandedIn(life, turn);
      if (!this.#world.hurried && random.chance(0.05)) throw new Error("a bad day");
      return this.#answer(turn);
    };
    const dice = random.next();
    if (dice < 0.4) return answer();
    if (dice < 0.42 && !this.#world.hurried) return hanging(turn, random.chance(0.5));
    if (dice < 0.5)
      return thenable((resolve, reject) => this.#later(life, random.int(50), answer, resolve, reject));
    return new Promise((resolve, reject) => this.#later(life, random.int(50), answer, resolve, reject));
  }

  #answer(turn: Turn): TurnResult {
    const random = this.#random;
    if (turn.toolChoice === "auto") return { text: `step ${this.#world.word()}`, calls: [] };
    if (this.#world.hurried) return this.#answerWith(this.#finishing(turn));
    const answer = random.chance(0.05)
      ? { text: `plain words ${this.#world.word()}`, calls: [] }
      : this.#answerWith(turn.toolChoice === "required" ? this.#plan(turn) : this.#finishing(turn));
    const oddity = random.next();
    if (oddity < 0.02) return { ...answer, memo: { huge: 10n } };
    if (oddity < 0.03) return { ...answer, memo: circle() };
    if (oddity < 0.06) return { ...answer, memo: this.#changing() };
    if (oddity < 0.08) return { ...answer, reasoning: "because", memo: { gone: undefined, at: new Date(0) } };
    if (oddity < 0.1) return { ...answer, compaction: { upTo: 1 + random.int(30), summary: "so far" } };
    if (oddity < 0.11) return JSON.parse("null");
    return answer;
  }

  /** An object that the agent changes after it has returned it. */
  #changing(): unknown {
    const memo = { count: 0 };
    this.#world.later(this.#random.int(30), () => {
      memo.count++;
    });
    return memo;
  }

  #finishing(turn: Turn): readonly PlannedCall[] {
    const canComplete = turn.tools.some((tool) => tool.name === "task_complete");
    return [canComplete ? complete(this.#world.word()) : respond("boss", this.#world.word())];
  }

  #plan(turn: Turn): readonly PlannedCall[] {
    const random = this.#random;
    const { agent: name } = turn;
    const others = ["boss", "ann", "bob", "cem", REMOTE_AGENT].filter((other) => other !== name);
    const other = others[random.int(others.length)] ?? "boss";
    const words = this.#world.word();
    const options: (() => readonly PlannedCall[])[] = [
      () => [ask(other, words)],
      () => [ask(other, words), wait()],
      () => [respond(other, words)],
      () => [this.#call("pay")],
      () => [this.#call("pay"), this.#call("pay")],
      () => [this.#call("look"), this.#call("pay"), respond(other, "did it")],
      () => [this.#call("note"), this.#call("look")],
      () => ["pay", "slow", "look", "pay", "boom"].map((name) => this.#call(name)),
      () => [
        this.#call("pay"),
        this.#call("look"),
        act("fly"),
        this.#call("note"),
        this.#call("pay"),
        wait(),
      ],
      () => [this.#call(random.pick(["slow", "boom"])), ask(other, words)],
      () => [this.#call("sell"), this.#call("look"), respond(other, "sold")],
      () => ["sell", "pay", "sell"].map((name) => this.#call(name)),
      () => [acknowledge()],
      () => [help()],
      () => [act("fly")],
      () => [ask(OTHER_AGENT, words)],
    ];
    if (turn.tools.some((tool) => tool.name === "task_complete")) {
      options.push(
        () => [complete(words)],
        () => [complete(words)],
        () => [broadcast(words)],
        () => [interrupt(other, words)],
        () => [act("sign"), ask(other, words)],
      );
    }
    return options[random.int(options.length)]?.() ?? [wait()];
  }

  #call(name: string): PlannedCall {
    return act(name, { token: ++this.#tokens });
  }

  #answerWith(calls: readonly PlannedCall[]): TurnResult {
    return { calls: calls.map((call, index) => ({ ...call, id: `${index + 1}` })) };
  }

  #action(life: Life, name: (typeof ACTIONS)[number]) {
    const idempotent = name === "look" || name === "slow";
    return action(name, (args, context) => this.#act(life, name, tokenOf(args), context, idempotent), {
      idempotent,
      ...(name === "slow" && { timeLimit: 80 }),
      ...(name === "note" && { parallel: false }),
      ...(name === "sell" && { approval: (args) => this.#needsApproval(life, args), approvalTimeout: 200 }),
    });
  }

  #needsApproval(life: Life, args: unknown): boolean | Promise<boolean> {
    const needed = tokenOf(args) % 4 !== 0;
    if (tokenOf(args) % 7 === 0) throw new Error("cannot tell");
    if (tokenOf(args) % 3 !== 0) return needed;
    return new Promise((resolve, reject) =>
      this.#later(life, this.#random.int(30), () => needed, resolve, reject),
    );
  }

  #act(life: Life, name: string, token: number, context: ActionContext, idempotent: boolean): unknown {
    this.#oracles.actionBegins(life, token, context, idempotent);
    const end = (): unknown => {
      const failed = name === "boom";
      const content = `${name} ${token} ${failed ? "failed" : "done"}`;
      this.#oracles.actionEnds(life, token, context, content);
      if (failed) throw new Error(content);
      return content;
    };
    if (name === "note") return end();
    const ms = name === "slow" && !this.#world.hurried ? this.#random.int(160) : this.#random.int(50);
    return new Promise((resolve, reject) => this.#later(life, ms, end, resolve, reject));
  }

  #later<T>(
    life: Life,
    ms: number,
    compute: () => T,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ): void {
    this.#world.later(
      ms,
      () => {
        try {
          resolve(compute());
        } catch (error) {
          reject(error);
        }
      },
      life,
    );
  }
}

function tokenOf(args: unknown): number {
  return isRecord(args) && typeof args.token === "number" ? args.token : 0;
}

/** An agent that never answers. Some react to their abort signal. */
function hanging(turn: Turn, notices: boolean): Promise<TurnResult> {
  return new Promise((_, reject) => {
    if (notices) turn.signal.addEventListener("abort", () => reject(new Error("told to stop")));
  });
}

/** A thenable that is not a built-in promise. */
function thenable(
  start: (resolve: (value: TurnResult) => void, reject: (error: unknown) => void) => void,
): Promise<TurnResult> {
  const promise = new Promise<TurnResult>(start);
  promise.catch(() => {});
  return Object.defineProperty(Object.create(null), METHOD, { value: promise.then.bind(promise) });
}

const METHOD = "then";

function circle(): unknown {
  const round: Record<string, unknown> = {};
  round.self = round;
  return round;
}
