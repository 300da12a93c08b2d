/** Agents that do whatever the dice say, in their own time, and actions that keep count. */
import { type AgentAnswer, type Turn, TurnHeldError } from "../../src/engine/agent.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import { isFromPerson } from "../../src/engine/state.js";
import type { AgentToolCall } from "../../src/mail/calls.js";
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
import type { VirtualClock } from "../kit/virtual-clock.js";

const NAMES = ["boss", "ann", "bob", "cem"] as const;

export interface ActionRuns {
  started: number;
  finished: number;
  readonly idempotent: boolean;
}

export interface Cast {
  readonly definition: SwarmDefinition;
  /** By task and call. */
  readonly runs: ReadonlyMap<string, ActionRuns>;
  /** What must never be: an agent that saw something of another instance. */
  readonly leaks: readonly string[];
  /** From now on everybody works towards the end. */
  hurry(): void;
}

export const runKey = (task: string, call: string): string => `${task} ${call}`;

export function createCast(random: Random, clock: VirtualClock): Cast {
  const runs = new Map<string, ActionRuns>();
  const leaks: string[] = [];
  let hurried = false;
  let calls = 0;

  const later = <T>(value: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      clock.after(random.int(50), () => {
        try {
          resolve(value());
        } catch (error) {
          reject(error);
        }
      });
    });

  const plan = (turn: Turn): readonly PlannedCall[] => {
    const others = NAMES.filter((name) => name !== turn.agent);
    const other = others[random.int(others.length)] ?? "boss";
    const canComplete = turn.tools.some((tool) => tool.name === "task_complete");
    if (turn.toolChoice !== "required" || (hurried && canComplete)) return [complete(`${calls}`)];
    if (hurried) return [respond("boss", `${calls}`)];
    const options: (() => readonly PlannedCall[])[] = [
      () => [ask(other, `question ${calls}`)],
      () => [ask(other, `question ${calls}`), wait()],
      () => [respond(other, `answer ${calls}`)],
      () => [act("pay")],
      () => [act("look"), act("pay"), respond(other, "did it")],
      () => [acknowledge()],
      () => [help()],
      () => [act("fly")],
    ];
    if (canComplete) {
      options.push(
        () => [complete(`${calls}`)],
        () => [complete(`${calls}`)],
        () => [broadcast(`news ${calls}`)],
        () => [interrupt(other, "stop")],
        () => [act("sign"), ask(other, "sign too")],
      );
    }
    return options[random.int(options.length)]?.() ?? [wait()];
  };

  const run = (turn: Turn): AgentAnswer | Promise<AgentAnswer> => {
    for (const item of turn.history) {
      if (item.kind !== "message" || !isFromPerson(item.message)) continue;
      if (!item.message.message.body.startsWith(`${turn.instance.id}:`))
        leaks.push(item.message.message.body);
    }
    const answer = (): AgentAnswer => {
      if (!hurried && random.chance(0.05)) throw new Error("a bad day");
      if (!hurried && random.chance(0.05)) throw new TurnHeldError("credentials", "the key is not at hand");
      if (!hurried && random.chance(0.05)) return { text: `plain words ${calls}`, calls: [] };
      const planned = plan(turn).map((call): AgentToolCall => ({ ...call, id: `call-${++calls}` }));
      return { calls: planned };
    };
    return random.chance(0.3) ? answer() : later(answer);
  };

  const counted = (name: string, idempotent: boolean) =>
    action(
      name,
      (_, { task, callId }) => {
        const key = runKey(task.key, callId);
        const count = runs.get(key) ?? { started: 0, finished: 0, idempotent };
        runs.set(key, count);
        count.started++;
        return later(() => {
          count.finished++;
          return `${name} done`;
        });
      },
      { idempotent },
    );

  const member = (name: string, supervisor: boolean) =>
    agent(name, {
      targets: NAMES.filter((other) => other !== name),
      supervisor,
      entrypoint: supervisor,
      actions: ["pay", "look", "sign"],
      run,
    });
  const definition = swarm(
    [member("boss", true), member("ann", false), member("bob", false), member("cem", true)],
    {
      actions: [counted("pay", false), counted("look", true), action("sign")],
      breakpoints: ["sign"],
    },
  );
  return {
    definition,
    runs,
    leaks,
    hurry: () => {
      hurried = true;
    },
  };
}
