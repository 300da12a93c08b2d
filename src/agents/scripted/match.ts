/** Matches a rule against a turn and collects the captures of its regular expressions. */
import type { Turn } from "../../engine/index.js";
import type { MAILMessage } from "../../mail/index.js";
import type { Mail } from "../mail.js";
import { actionResults, answersOf, openWorkOf, senderOf } from "../open-work.js";
import type { TextTest, When } from "./rules.js";

/** Numbered groups under `1`, `2`, … (of the first expression that has some), named groups under their names. */
export type Captures = ReadonlyMap<string, string>;

/** Only this much of a text is searched, so that foreign text cannot keep a regular expression busy. */
const MAX_TESTED_LENGTH = 10_000;

/** @param recall returns an earlier capture of a named group in the task. */
export function matchWhen(
  when: When,
  mail: Mail,
  recall: (name: string) => string | undefined,
): Captures | undefined {
  const captures = new Map<string, string>();
  const fits =
    matchMessage(when, mail.message, mail.swarm, captures) &&
    matchTexts(when.question, mail.question?.message.body, captures) &&
    matchResult(when, mail) &&
    matchRound(when, mail) &&
    (when.remembers === undefined || listOf(when.remembers).every((name) => recall(name) !== undefined)) &&
    matchTimes(when, mail);
  return fits ? captures : undefined;
}

/** Tests the conditions that depend on the message alone, so that it also works for earlier messages. */
export function matchMessage(
  when: When,
  message: MAILMessage,
  swarm: string,
  captures: Map<string, string>,
): boolean {
  const { sender, subject, body } = message.message;
  return (
    includes(when.type, message.msg_type) &&
    includes(when.from, senderOf(message, swarm)) &&
    includes(when.from_type, sender.address_type) &&
    matchTexts(when.subject, subject, captures) &&
    matchTexts(when.body, body, captures)
  );
}

function includes<T extends string>(wanted: T | readonly T[] | undefined, actual: string): boolean {
  return wanted === undefined || listOf(wanted).some((item) => item === actual);
}

function matchResult(when: When, mail: Mail): boolean {
  const results = actionResults(mail);
  if (when.result === false) return results.length === 0;
  if (when.result === undefined && when.ok === undefined) return true;
  const meant =
    typeof when.result === "string" ? results.filter(({ name }) => name === when.result) : results;
  if (meant.length === 0) return false;
  return when.ok === undefined || meant.every(({ ok }) => ok === when.ok);
}

function matchRound(when: When, mail: Mail): boolean {
  if (when.waiting !== undefined && when.waiting !== mail.waitingFor.length > 0) return false;
  if (when.answered === undefined) return true;
  const answered = new Set(answersOf(mail, openWorkOf(mail)).map(({ from }) => from));
  return listOf(when.answered).every((agent) => answered.has(agent));
}

/** Number of messages of the task that the rule matched, including the current one. */
function matchTimes(when: When, mail: Mail): boolean {
  if (when.times === undefined) return true;
  const { min = 1, max = Number.POSITIVE_INFINITY } =
    typeof when.times === "number" ? { min: when.times, max: when.times } : when.times;
  const count = receivedMessages(mail).filter((message) =>
    matchMessage(when, message, mail.swarm, new Map()),
  ).length;
  return count >= min && count <= max;
}

/** All messages in the agent's history of this task, in order. */
export function receivedMessages(turn: Turn): readonly MAILMessage[] {
  return turn.history.flatMap((item) => (item.kind === "message" ? [item.message] : []));
}

function matchTexts(
  tests: TextTest | readonly TextTest[] | undefined,
  text: string | undefined,
  captures: Map<string, string>,
): boolean {
  if (tests === undefined) return true;
  if (text === undefined) return false;
  const tested = text.slice(0, MAX_TESTED_LENGTH);
  return listOf(tests).every((test) => matchText(test, tested, captures));
}

function matchText(test: TextTest, text: string, captures: Map<string, string>): boolean {
  if (typeof test === "string") return contains(text, test);
  if (test.contains !== undefined && !contains(text, test.contains)) return false;
  if (test.equals !== undefined && text.trim() !== test.equals) return false;
  if (test.matches === undefined) return true;
  const found = expressionOf(test.matches, test.flags).exec(text);
  if (found === null) return false;
  keepCaptures(found, captures);
  return true;
}

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}

export function expressionOf(source: string, flags = "iu"): RegExp {
  return new RegExp(source, flags);
}

function keepCaptures(found: RegExpExecArray, captures: Map<string, string>): void {
  if (!captures.has("0")) {
    for (const [index, value] of found.entries()) if (value !== undefined) captures.set(String(index), value);
  }
  for (const [name, value] of Object.entries(found.groups ?? {})) {
    if (value !== undefined) captures.set(name, value);
  }
}

export function listOf<T extends string | object>(value: T | readonly T[]): readonly T[] {
  return isList(value) ? value : [value];
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}
