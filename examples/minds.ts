/**
 * What the agents of the examples think with: a script, so that they run anywhere and can be checked, or a model, if
 * there is a key for one in the environment (OPENAI_API_KEY or ANTHROPIC_API_KEY; LLM chooses another model).
 */
// In a project of your own: from "mailroom".
import { type AgentFunction, type MailFunction, modelAgent } from "../src/index.js";

const { OPENAI_API_KEY = "", ANTHROPIC_API_KEY = "", LLM = "" } = process.env;

/** Nothing where there is no key. */
export const llm: string | undefined =
  LLM !== ""
    ? LLM
    : OPENAI_API_KEY !== ""
      ? "openai/gpt-5-mini"
      : ANTHROPIC_API_KEY !== ""
        ? "anthropic/claude-haiku-4-5"
        : undefined;

export function mind(system: string, script: MailFunction): MailFunction | AgentFunction {
  return llm === undefined ? script : modelAgent({ llm, system });
}
