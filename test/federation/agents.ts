/** Agents that ask and answer other swarms. They keep no state outside their history, so they survive kills. */
import type { AgentFunction, HistoryItem, Turn, TurnResult } from "../../src/engine/agent.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { MAILMessage } from "../../src/mail/message.js";
import { agent, swarm } from "../kit/swarms.js";

function call(name: string, args: Readonly<Record<string, unknown>>, id = "1"): TurnResult["calls"][number] {
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

/** Messages since the last request of the user, or of the swarm that asked. */
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

/** Asks the agents that the request names, waits for all of them, and completes the task with their answers. */
export const boss: AgentFunction = (turn: Turn): TurnResult => {
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

/** Answers every request. */
const clerk: AgentFunction = (turn) => {
  const [{ message }] = turn.messages;
  return { calls: [], text: `${turn.swarm} says: ${message.body}` };
};

/** Answers only after `release`. A request with `[hold]` waits for `release(true)`. */
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
 * `boss` asks and completes, `clerk` answers with text, `slow` answers after `release`. Every agent may write to
 * every agent of the named swarms.
 */
export function testSwarm(name: string, others: readonly string[], slow = new Slow()): SwarmDefinition {
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
