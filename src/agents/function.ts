/** `functionAgent`: a TypeScript function as an agent. */
import { randomUUID } from "node:crypto";
import type { AgentAnswer, AgentFunction } from "../engine/agent.js";
import type { AgentToolCall } from "../mail/calls.js";
import { AgentError } from "./errors.js";
import { type Mail, openMail } from "./mail.js";

/**
 * What the function may return: nothing, when it said everything through `mail`; else a text for the sender of the
 * message, calls, or a whole answer.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is the usual one
export type MailOutcome = void | string | readonly AgentToolCall[] | AgentAnswer;

export interface MailFunction {
  (mail: Mail): MailOutcome | Promise<MailOutcome>;
  /** Whether its turns may start on mail that is not durable yet, unless the agent's definition says. Default: true. */
  readonly speculate?: boolean;
}

/** The same function, with a wish for how its turns start. */
export function starting<F extends (mail: Mail) => MailOutcome | Promise<MailOutcome>>(
  run: F,
  speculate: boolean | undefined,
): F & Pick<MailFunction, "speculate"> {
  return Object.assign(run, speculate === undefined ? {} : { speculate });
}

export interface FunctionAgentOptions {
  /** Where ids of calls come from; unique within a task. Default: random UUIDs. */
  readonly newId?: () => string;
}

/**
 * Every function of a turn is a function of mail, too, for `Mail` is a `Turn`.
 * @throws AgentError from the returned function when `run` did nothing, or both recorded calls and returned some.
 */
export function functionAgent(run: MailFunction, options: FunctionAgentOptions = {}): AgentFunction {
  const newId = options.newId ?? randomUUID;
  return (turn) => {
    const { mail, calls } = openMail(turn, newId);
    const outcome = run(mail);
    // What is there at once is answered at once: no promise, and no clock to stop it by.
    return isPromised(outcome)
      ? Promise.resolve(outcome).then((late) => conclude(late, mail, calls))
      : conclude(outcome, mail, calls);
  };
}

function isPromised(outcome: MailOutcome | Promise<MailOutcome>): outcome is Promise<MailOutcome> {
  return typeof outcome === "object" && outcome !== null && "then" in outcome;
}

function conclude(outcome: MailOutcome, mail: Mail, calls: readonly AgentToolCall[]): AgentAnswer {
  const answer = toAnswer(outcome, mail.agent);
  if (answer === undefined) {
    if (calls.length > 0) return { calls: [...calls] };
    throw new AgentError(
      "empty_answer",
      `agent '${mail.agent}' did nothing with a ${mail.type} from ${mail.fromType} '${mail.from}'. ` +
        "Call mail.reply(…), another verb of mail, or mail.await() when there is nothing to do yet.",
    );
  }
  if (calls.length > 0) {
    throw new AgentError(
      "mixed_answer",
      `agent '${mail.agent}' recorded ${calls.map(({ name }) => name).join(", ")} through mail and returned an ` +
        "answer as well. Do one or the other: either call the verbs of mail and return nothing, or return the answer.",
    );
  }
  return answer;
}

function toAnswer(outcome: MailOutcome, agent: string): AgentAnswer | undefined {
  if (outcome === undefined) return undefined;
  if (typeof outcome === "string") return { text: outcome, calls: [] };
  if (isCallList(outcome)) return { calls: outcome };
  // JavaScript callers have no compiler that keeps them from returning something else.
  if (typeof outcome === "object" && outcome !== null && Array.isArray(outcome.calls)) return outcome;
  throw new AgentError(
    "bad_answer",
    `agent '${agent}' returned something that is no answer. ` +
      "Return nothing, a string, a list of calls ({ id, name, args }), or { text?, calls }.",
  );
}

function isCallList(outcome: readonly AgentToolCall[] | AgentAnswer): outcome is readonly AgentToolCall[] {
  return Array.isArray(outcome);
}
