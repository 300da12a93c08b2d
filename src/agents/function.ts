/** `functionAgent`: a TypeScript function as an agent. */

import { randomUUID } from "node:crypto";
import { MailroomError } from "../base/index.js";
import type { AgentFunction, TurnResult } from "../engine/index.js";
import type { AgentToolCall } from "../mail/index.js";
import { type Mail, openMailHandle } from "./mail.js";

/**
 * Return value of a function agent: nothing when it used the verbs of `mail`, otherwise a text for the sender, calls,
 * or a complete answer.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: most of these functions return nothing
export type MailOutcome = void | string | readonly AgentToolCall[] | TurnResult;

/**
 * An agent as a function of its mail. It calls verbs of `mail` and returns nothing, or returns its text or its calls.
 */
export interface MailFunction {
  (mail: Mail): MailOutcome | Promise<MailOutcome>;
  /**
   * Whether turns may start on mail that is not yet durable. The agent's definition takes precedence. Default: true.
   */
  readonly speculate?: boolean;
}

/** Sets `speculate` on a function. */
export function starting<F extends (mail: Mail) => MailOutcome | Promise<MailOutcome>>(
  run: F,
  speculate: boolean | undefined,
): F & Pick<MailFunction, "speculate"> {
  return Object.assign(run, speculate === undefined ? {} : { speculate });
}

export interface FunctionAgentOptions {
  /** Creates ids of calls, unique within a task. Default: random UUIDs. */
  readonly newId?: () => string;
}

/**
 * Makes an agent of a function. A function of a `Turn` also fits, because `Mail` is a `Turn`.
 * @throws MailroomError from the returned function when `run` did nothing, or recorded calls and also returned some.
 */
export function functionAgent(run: MailFunction, options: FunctionAgentOptions = {}): AgentFunction {
  const newId = options.newId ?? randomUUID;
  return (turn) => {
    const { mail, calls } = openMailHandle(turn, newId);
    const outcome = run(mail);
    // A synchronous result is returned synchronously, without a promise or a timer.
    return isPromised(outcome)
      ? Promise.resolve(outcome).then((late) => conclude(late, mail, calls))
      : conclude(outcome, mail, calls);
  };
}

function isPromised(outcome: MailOutcome | Promise<MailOutcome>): outcome is Promise<MailOutcome> {
  return typeof outcome === "object" && outcome !== null && "then" in outcome;
}

function conclude(outcome: MailOutcome, mail: Mail, calls: readonly AgentToolCall[]): TurnResult {
  const answer = toAnswer(outcome, mail.agent);
  if (answer === undefined) {
    if (calls.length > 0) return { calls: [...calls] };
    throw new MailroomError(
      "empty_answer",
      `agent '${mail.agent}' did nothing with a ${mail.type} from ${mail.fromType} '${mail.from}'. ` +
        "Call mail.reply(…) or another verb of mail, or mail.await() to wait for more mail.",
    );
  }
  if (calls.length > 0) {
    throw new MailroomError(
      "mixed_answer",
      `agent '${mail.agent}' recorded ${calls.map(({ name }) => name).join(", ")} through mail and also returned an ` +
        "answer. Either call the verbs of mail and return nothing, or return the answer.",
    );
  }
  return answer;
}

function toAnswer(outcome: MailOutcome, agent: string): TurnResult | undefined {
  if (outcome === undefined) return undefined;
  if (typeof outcome === "string") return { text: outcome, calls: [] };
  if (isCallList(outcome)) return { calls: outcome };
  // JavaScript callers can return anything.
  if (typeof outcome === "object" && outcome !== null && Array.isArray(outcome.calls)) return outcome;
  throw new MailroomError(
    "agent_bad_answer",
    `agent '${agent}' returned an invalid answer. ` +
      "Return nothing, a string, a list of calls ({ id, name, args }), or { text?, calls }.",
  );
}

function isCallList(outcome: readonly AgentToolCall[] | TurnResult): outcome is readonly AgentToolCall[] {
  return Array.isArray(outcome);
}
