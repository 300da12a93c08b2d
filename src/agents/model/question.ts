/** One question to a model, outside of any task: nobody's history, no tools, no caller's token. */
import type { ModelSurroundings } from "./agent.js";
import { readAnswer } from "./answer.js";
import { callModel } from "./call.js";
import { hasCredentials, planConnection } from "./connection.js";
import { type CallOptions, connect, type LanguageModel } from "./language-model.js";
import { readModelParams } from "./params.js";
import { MODEL_BACKOFF, withRetries } from "./retry.js";

export interface QuestionOptions {
  /** `provider/model`. */
  readonly llm: string;
  /** Milliseconds for the answer, all attempts together. */
  readonly timeLimit: number;
}

export interface Questioner {
  /** What is missing before an answer can be expected; nothing if all is there. */
  readonly missing: string | undefined;
  /** @throws when there is no answer */
  ask(question: { readonly system: string; readonly text: string }, signal: AbortSignal): Promise<string>;
}

const MOST_RETRIES = 2;
const MOST_TOKENS = 4_000;

/** @throws ConnectionError (code `bad_model`) when the name leads to no model */
export function modelQuestioner(
  { llm, timeLimit }: QuestionOptions,
  { env = process.env, fetch, now = Date.now, random = Math.random, backoff }: ModelSurroundings = {},
): Questioner {
  const connection = planConnection({ ...readModelParams({ llm }), toolFormat: "completions" }, env);
  const { credentials } = connection;
  const key = credentials.kind === "none" ? undefined : credentials.key;
  const needsKey = credentials.kind === "caller" ? key === undefined : !hasCredentials(connection);
  const variable = credentials.kind === "key" ? credentials.variable : "LITELLM_PROXY_API_KEY";
  let model: Promise<LanguageModel> | undefined;
  return {
    missing: needsKey ? `there is no key for ${llm}: set ${variable}` : undefined,
    async ask({ system, text }, signal) {
      const options: CallOptions = {
        prompt: [
          { role: "system", content: system },
          { role: "user", content: [{ type: "text", text }] },
        ],
        maxOutputTokens: MOST_TOKENS,
      };
      model ??= connect(connection, fetch);
      const asked = await model;
      const until = AbortSignal.any([signal, AbortSignal.timeout(timeLimit)]);
      const answer = await withRetries(() => callModel({ model: asked, options, signal: until, timeLimit }), {
        maxRetries: MOST_RETRIES,
        signal: until,
        now,
        random,
        policy: backoff ?? MODEL_BACKOFF,
      });
      return readAnswer(answer).text;
    },
  };
}
