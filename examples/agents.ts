/**
 * The implementation of the examples' agents: a script, so that they run anywhere and can be checked, or a model, if
 * the environment has a key (OPENAI_API_KEY or ANTHROPIC_API_KEY; LLM selects another model).
 */
import { type AgentFunction, type MailFunction, modelAgent } from "agent-mailroom";

const { OPENAI_API_KEY = "", ANTHROPIC_API_KEY = "", LLM = "" } = process.env;

/** Undefined without a key. */
export const llm: string | undefined =
  LLM !== ""
    ? LLM
    : OPENAI_API_KEY !== ""
      ? "openai/gpt-5-mini"
      : ANTHROPIC_API_KEY !== ""
        ? "anthropic/claude-haiku-4-5"
        : undefined;

export function scriptOrModel(system: string, script: MailFunction): MailFunction | AgentFunction {
  return llm === undefined ? script : modelAgent({ llm, system });
}
