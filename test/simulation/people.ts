/** The requests of users and programs to a process, and the checks of its responses. */
import { hasCode, isPublicError } from "../../src/base/index.js";
import type { InstanceId } from "../../src/engine/ports.js";
import type { JournalLocation, LentMessage, PostReceipt } from "../../src/engine/runtime/index.js";
import type { ApprovalDecision, Command } from "../../src/engine/task/commands.js";
import { askedCalls, type TaskState } from "../../src/engine/task/state.js";
import type { JournalKey } from "../../src/journal/index.js";
import type { Random } from "../kit/seeded.js";
import { SWARM } from "../kit/swarms.js";
import { type Cast, OTHER_AGENT, OTHER_SWARM, REMOTE_AGENT } from "./cast.js";
import type { NamePut } from "./disk.js";
import type { North } from "./north.js";
import { type Oracles, short } from "./oracles.js";
import type { AtTask, Operation } from "./plan.js";
import type { Process } from "./process.js";
import { describe, type World } from "./world.js";

type Post = Extract<Operation, { op: "post" }>;
type End = Extract<Operation, { op: "lend" }>["ends"];

export interface PeopleParts {
  readonly world: World;
  readonly oracles: Oracles;
  readonly cast: Cast;
  readonly north: North;
}

export class People {
  readonly #world: World;
  readonly #oracles: Oracles;
  readonly #cast: Cast;
  readonly #north: North;
  readonly #random: Random;
  readonly #acknowledged: JournalLocation[] = [];

  constructor({ world, oracles, cast, north }: PeopleParts) {
    this.#world = world;
    this.#oracles = oracles;
    this.#cast = cast;
    this.#north = north;
    this.#random = world.stream("people");
  }

  // --- writing

  post(process: Process, operation: Omit<Post, "at" | "op">): void {
    const { who, type, name, manual, to, fresh, bad, maxSteps } = operation;
    const body = `${who}: ${this.#world.word()}`;
    const input = {
      body,
      type: to === undefined ? type : ("request" as const),
      ...(fresh !== true && { taskId: taskIdOf(operation) }),
      ...(manual !== undefined && { manual }),
      ...(to === "remote" && { targets: [REMOTE_AGENT] }),
      ...(to === "other swarm" && { targets: [OTHER_AGENT] }),
      ...(maxSteps !== undefined && { maxSteps }),
      ...(bad === true && { routingInfo: { huge: 10n } }),
      ...(name !== undefined && {
        rows: ({ key, number }: JournalLocation): NamePut[] => [
          { kind: "name.put", name: `${name}`, key, number },
        ],
      }),
    };
    process.ask("post", () => process.runtime.post(person(who), input), {
      answered: (posted) => this.#posted(process, posted, body),
      rejected: () => process.phase === "open" && this.#oracles.rejected(body),
    });
  }

  #posted(process: Process, posted: PostReceipt, body?: string): void {
    this.#oracles.acknowledged(posted, body, true);
    this.#acknowledged.push(posted);
    process.ask(`outcome of ${placeOf(posted)}`, () => posted.outcome, {
      answered: (outcome) => this.#oracles.outcome(posted, outcome),
      rejected: (error) => {
        if (process.phase === "open") this.#world.violate(`an outcome was rejected: ${describe(error)}`);
      },
    });
  }

  cancel(process: Process, at: AtTask): void {
    const by = `user:${at.who}@${SWARM}`;
    this.#withKey(process, at, (key) => {
      const from = this.#oracles.toldNumber(key);
      process.ask("cancel", () => process.runtime.cancel(key, by), {
        rejected: (error) => this.#refused(process, key, { type: "cancel", by }, error, from),
      });
    });
  }

  answer(process: Process, instance: InstanceId, taskId: string, wrong: boolean): void {
    const { runtime } = process;
    const answering = async () => {
      const key = await runtime.find(instance, taskId);
      if (key === undefined) return undefined;
      const open = await runtime.read(key, openCalls);
      const results = (open ?? []).map((callId) => ({ callId, content: "granted" }));
      if (wrong) results.push({ callId: "nobody's", content: "granted" });
      const from = this.#oracles.toldNumber(key);
      return await runtime.answerBreakpoint(instance, taskId, { results }).catch((error: unknown) => {
        this.#refused(process, key, { type: "answer_breakpoint", results }, error, from);
        throw error;
      });
    };
    process.ask("answer", answering, {
      answered: (posted) => posted !== undefined && this.#posted(process, posted),
    });
  }

  /** Approves, changes or rejects some or all of the calls that wait for approval. */
  decide(process: Process, instance: InstanceId, taskId: string, how: number): void {
    const { runtime } = process;
    const deciding = async () => {
      const key = await runtime.find(instance, taskId);
      if (key === undefined) return undefined;
      const asked = (await runtime.read(key, askedCalls)) ?? [];
      const decisions = asked.slice(0, how === 1 ? 1 : undefined).map(({ call }, index): ApprovalDecision => {
        const callId = how === 0 ? "nobody's" : call.id;
        if ((how + index) % 3 === 0) return { callId, decision: "reject", reason: "no" };
        return { callId, decision: "approve", ...(how === 4 && { args: { ...call.args, changed: true } }) };
      });
      const from = this.#oracles.toldNumber(key);
      return await runtime.answerApprovals({ key, taskId }, { decisions }).catch((error: unknown) => {
        this.#refused(process, key, { type: "answer_approvals", decisions }, error, from);
        throw error;
      });
    };
    process.ask("decide", deciding, {
      answered: (posted) => posted !== undefined && this.#posted(process, posted),
    });
  }

  step(process: Process, { who, slot, agent }: AtTask & { readonly agent: string }): void {
    const reply = { type: "broadcast", targets: [] } as const;
    const words = this.#world.word();
    process.ask("step", () =>
      process.runtime.manualStep(person(who), taskIdOf({ slot }), agent, words, reply),
    );
  }

  command(process: Process, at: AtTask, command: Command): void {
    this.#withKey(process, at, (key) =>
      process.ask(command.type, () => process.runtime.command(key, command), {
        rejected: (error) => this.#refused(process, key, command, error, 0),
      }),
    );
  }

  /** The rules throw while other units of the task are pending: the partial decision must leave no trace. */
  breakRules(process: Process, at: AtTask, midway: boolean): void {
    const key = this.#oracles.disk.find(person(at.who), taskIdOf(at))?.key;
    this.post(process, { ...at, type: "request" });
    if (key === undefined) return;
    const broken = new Proxy<never[]>([], {
      get: () => {
        throw new Error("injected: the rules broke");
      },
    });
    const command: Command = midway
      ? { type: "conclude", status: "completed", message: this.#north.question("task"), told: broken }
      : { type: "copy_events", swarm: OTHER_SWARM, events: broken };
    process.ask("nonsense", () => process.runtime.command(key, command));
  }

  /** A refusal must follow from the journal, and an existing task must not be reported as unknown. */
  #refused(process: Process, key: JournalKey, command: Command, error: unknown, from: number): void {
    if (!isPublicError(error)) return;
    this.#checkUnknown(key, error);
    if (!REFUSALS.has(error.code)) return;
    const { life, runtime } = process;
    this.#oracles.refusal(life, key, command, { code: error.code, rules: runtime.rules, from });
  }

  #checkUnknown(key: JournalKey, error: unknown): void {
    const isUnknown = hasCode(error, "unknown_task");
    if (isUnknown && this.#oracles.disk.journals.has(key)) {
      this.#world.violate(`${short(key)} is called unknown and is there`);
    }
  }

  // --- reading

  read(process: Process, operation: Extract<Operation, { op: "read" }>): void {
    this.#withKey(process, operation, (key) => {
      for (let times = 0; times < operation.times; times++) {
        const writes = times === 0 && operation.thenPost;
        this.readOne(process, key, () => {
          if (writes) this.post(process, { ...operation, type: "request" });
        });
      }
    });
  }

  readOne(process: Process, key: JournalKey, then: () => void = () => {}): void {
    const atLeast = this.#oracles.toldNumber(key);
    const look = (state: TaskState): true => {
      this.#oracles.read(key, state, atLeast);
      return true;
    };
    process.ask("read", () => process.runtime.read(key, look), {
      answered: (found) => {
        if (found === undefined) this.#notFound(key);
        then();
      },
    });
  }

  look(process: Process, at: AtTask): void {
    this.#withKey(process, at, (key) => {
      const atLeast = this.#oracles.toldNumber(key);
      process.ask("look", () => process.runtime.summary(key), {
        answered: (figures) => {
          if (figures === undefined) this.#notFound(key);
          else this.#oracles.figuresOf(key, figures, atLeast);
        },
      });
    });
  }

  #notFound(key: JournalKey): void {
    if (this.#oracles.disk.journals.has(key)) this.#world.violate(`${short(key)} is there and was not found`);
  }

  follow(process: Process, operation: Extract<Operation, { op: "follow" }>): void {
    const { life, runtime } = process;
    const leaving = new AbortController();
    this.#world.later(operation.ms, () => leaving.abort(), life);
    this.#withKey(process, operation, (key) => {
      const following = async () => {
        let seen = operation.after;
        for await (const { number, entry } of runtime.follow(key, { after: seen, signal: leaving.signal })) {
          if (!life.alive) return;
          if (number !== ++seen) {
            this.#world.violate(`a follower of ${short(key)} got ${number} instead of ${seen}`);
          }
          this.#oracles.streamed(key, number, entry);
        }
      };
      process.waitFor("follower", following);
    });
  }

  /** A caller lost the response, or the process that would have sent it. */
  askAgain(process: Process, which: number): void {
    const at = this.#acknowledged[which % Math.max(1, this.#acknowledged.length)];
    if (at === undefined) return;
    process.ask(`outcome again of ${placeOf(at)}`, () => process.runtime.outcomeOf(at), {
      answered: (outcome) => this.#oracles.outcome(at, outcome),
      rejected: (error) => this.#checkUnknown(at.key, error),
    });
  }

  remove(process: Process, at: AtTask): void {
    this.#withKey(process, at, (key) =>
      process.ask("remove", () => process.runtime.remove(key), {
        answered: (removed) => {
          if (removed && this.#oracles.disk.journals.has(key)) {
            this.#world.violate(`${short(key)} is called removed and is there`);
          }
        },
      }),
    );
  }

  // --- serving the remote agent

  serve(process: Process, ends: End, ms: number): void {
    const { life } = process;
    const leaving = new AbortController();
    if (ends === "leave") this.#world.later(ms, () => leaving.abort(), life);
    this.#take(process, leaving.signal, (lending) => {
      this.#world.later(ms, () => this.#giveBack(process, lending, ends), life);
    });
  }

  serveForever(process: Process): void {
    const again = () => this.serveForever(process);
    this.#take(
      process,
      undefined,
      (lending) => {
        this.#world.later(
          this.#random.int(20),
          () => this.#giveBack(process, lending, "answer"),
          process.life,
        );
        again();
      },
      () => process.phase === "open" && again(),
    );
  }

  #take(
    process: Process,
    signal: AbortSignal | undefined,
    taken: (lending: LentMessage) => void,
    rejected: () => void = () => {},
  ): void {
    const next = () => process.runtime.remote.next(REMOTE_AGENT, signal === undefined ? {} : { signal });
    process.waitFor("taker", next, {
      answered: (lending) => {
        if (lending === undefined) return;
        this.#oracles.lent(lending);
        taken(lending);
      },
      rejected,
    });
  }

  #giveBack(process: Process, lending: LentMessage, ends: End): void {
    const { remote } = process.runtime;
    const { id } = lending.message;
    // A taker that is unsure whether its answer was accepted releases the message, so that another taker gets it.
    const rejected = (error: unknown) => {
      if (process.phase !== "open" || (isPublicError(error) && OVER.has(error.code))) return;
      this.#world.later(10, () => this.#giveBack(process, lending, "release"), process.life);
    };
    if (ends === "answer") {
      const answer = this.#cast.remoteAnswer();
      process.ask("answer lent", () => remote.answer(lending, id, answer), { rejected });
    } else {
      process.ask("release", () => remote.release(lending, id), { rejected });
    }
  }

  #withKey(process: Process, at: AtTask, then: (key: JournalKey) => void): void {
    process.ask("find", () => process.runtime.find(person(at.who), taskIdOf(at)), {
      answered: (key) => key !== undefined && process.phase === "open" && then(key),
    });
  }
}

/** Refusals that follow from the state alone. */
const REFUSALS: ReadonlySet<string> = new Set([
  "already_ended",
  "not_paused",
  "missing_results",
  "unknown_calls",
]);

/** Errors for a message that is no longer lent to the taker. */
const OVER: ReadonlySet<string> = new Set(["stale_attempt", "unknown_task"]);

export function person(id: string): InstanceId {
  return { role: "user", id };
}

export function taskIdOf({ slot }: { readonly slot: number }): string {
  return `task ${slot}`;
}

export function openCalls(state: TaskState): string[] {
  return [...state.agents.values()].flatMap(({ open }) => open.map(({ id }) => id));
}

function placeOf({ key, number }: JournalLocation): string {
  return `${short(key)} #${number}`;
}
