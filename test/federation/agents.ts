/** Agents that ask other swarms and answer them. What they know they read from their history, so they survive kills. */
import type { AgentAnswer, AgentFunction, HistoryItem, Turn } from "../../src/engine/agent.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { MAILMessage } from "../../src/mail/message.js";
import { agent, swarm } from "../kit/swarms.js";

function call(name: string, args: Readonly<Record<string, unknown>>, id = "1"): AgentAnswer["calls"][number] {
  return { id, name, args };
}

/** `ask weather@beta, poet@gamma: Tokyo?` */
function readWish(body: string): { targets: string[]; text: string } | undefined {
  const match = /^ask ([^:]+): (.*)$/s.exec(body);
  if (match === null) return undefined;
  return { targets: (match[1] ?? "").split(",").map((target) => target.trim()), text: match[2] ?? "" };
}

const isFromPerson = ({ message }: MAILMessage) =>
  message.sender.address_type === "user" || message.sender.address_type === "admin";

/** Messages since the last wish: of the person who gave the task, or of the swarm that asked. */
function sinceWish(history: readonly HistoryItem[]): { wish: MAILMessage | undefined; after: MAILMessage[] } {
  let wish: MAILMessage | undefined;
  let after: MAILMessage[] = [];
  for (const item of history) {
    if (item.kind !== "message") continue;
    const { message } = item;
    const asks =
      isFromPerson(message) ||
      (message.msg_type === "request" && message.message.sender.address.includes("@"));
    if (asks) {
      wish = message;
      after = [];
    } else if (message.msg_type === "response") after.push(message);
  }
  return { wish, after };
}

/** Asks whom it is told to ask, waits for all of them, and completes the task with what they said. */
export const boss: AgentFunction = (turn: Turn): AgentAnswer => {
  const { wish, after } = sinceWish(turn.history);
  const wanted = wish === undefined ? undefined : readWish(wish.message.body);
  if (wanted === undefined) {
    return { calls: [call("task_complete", { finish_message: `echo: ${wish?.message.body ?? ""}` })] };
  }
  if (turn.messages[0] === wish || (after.length === 0 && turn.messages[0].id === wish?.id)) {
    return {
      calls: wanted.targets.map((target, index) =>
        call("send_request", { target, subject: "Question", body: wanted.text }, `${index}`),
      ),
    };
  }
  if (after.length < wanted.targets.length)
    return { calls: [call("await_message", { reason: "more to come" })] };
  const finish_message = after
    .map(({ message }) => `${message.sender.address}: ${message.body}`)
    .sort()
    .join(" | ");
  return { calls: [call("task_complete", { finish_message })] };
};

/** Answers whoever asked. */
export const clerk: AgentFunction = (turn) => {
  const { body } = turn.messages[0].message;
  return { calls: [], text: `${turn.swarm} says: ${body}` };
};

/** Takes its time: until `release` is called. What is asked with `[hold]` waits for `release(true)`. */
export class Slow {
  #waiting: { readonly held: boolean; readonly go: () => void }[] = [];
  readonly mind: AgentFunction = (turn) =>
    new Promise((resolve) => {
      const { body } = turn.messages[0].message;
      const go = () => resolve({ calls: [], text: `late: ${body}` });
      this.#waiting.push({ held: body.includes("[hold]"), go });
    });

  get begun(): number {
    return this.#waiting.length;
  }

  release(held = false): void {
    const released = this.#waiting.filter((turn) => held || !turn.held);
    this.#waiting = this.#waiting.filter((turn) => !released.includes(turn));
    for (const { go } of released) go();
  }
}

/**
 * `boss` asks and completes, `clerk` answers with text, `slow` when it is told to. Every agent may write to every agent
 * of the swarms named.
 */
export function houseSwarm(name: string, others: readonly string[], slow = new Slow()): SwarmDefinition {
  const names = ["boss", "clerk", "slow"];
  const far = others.flatMap((other) => names.map((agentName) => `${agentName}@${other}`));
  const near = (self: string) => names.filter((other) => other !== self);
  const base = { interswarm: true } as const;
  return {
    ...swarm([
      agent("boss", {
        ...base,
        targets: [...near("boss"), ...far],
        supervisor: true,
        entrypoint: true,
        run: boss,
      }),
      agent("clerk", { ...base, targets: [...near("clerk"), ...far], run: clerk }),
      agent("slow", { ...base, targets: [...near("slow"), ...far], run: slow.mind }),
    ]),
    name,
    public: true,
  };
}
