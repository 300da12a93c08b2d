/** One call of a model outside of any task: no history, tools or caller's token. */
import type { ModelEnvironment } from "./agent.js";
import { readAnswer } from "./answer.js";
import { boundedFetch } from "./bounded.js";
import { callModel } from "./call.js";
import { hasCredentials, planConnection } from "./connection.js";
import { type CallOptions, connect, type SdkModel } from "./language-model.js";
import { readModelParams } from "./params.js";
import { MODEL_BACKOFF, withRetries } from "./retry.js";

export interface OneShotModelOptions {
  /** `provider/model`. */
  readonly llm: string;
  /** Milliseconds for the answer, all attempts together. */
  readonly timeLimit: number;
}

export interface OneShotModel {
  /** The missing configuration, or undefined if the model can be called. */
  readonly missing: string | undefined;
  /** @throws when the model does not answer */
  ask(question: { readonly system: string; readonly text: string }, signal: AbortSignal): Promise<string>;
}

const MAX_RETRIES = 2;
const MAX_TOKENS = 4_000;

/** @throws MailroomError `bad_model` when the name identifies no model */
export function oneShotModel(
  { llm, timeLimit }: OneShotModelOptions,
  {
    env = process.env,
    fetch: send = fetch,
    now = Date.now,
    random = Math.random,
    backoff,
  }: ModelEnvironment = {},
): OneShotModel {
  const connection = planConnection({ ...readModelParams({ llm }), toolFormat: "completions" }, env);
  const { credentials } = connection;
  const key = credentials.kind === "none" ? undefined : credentials.key;
  const needsKey = credentials.kind === "caller" ? key === undefined : !hasCredentials(connection);
  const variable = credentials.kind === "key" ? credentials.variable : "LITELLM_PROXY_API_KEY";
  let model: Promise<SdkModel> | undefined;
  return {
    missing: needsKey ? `no key for ${llm}: set ${variable}` : undefined,
    async ask({ system, text }, signal) {
      const options: CallOptions = {
        prompt: [
          { role: "system", content: system },
          { role: "user", content: [{ type: "text", text }] },
        ],
        maxOutputTokens: MAX_TOKENS,
      };
      model ??= connect(connection, boundedFetch(send));
      const asked = await model;
      const until = AbortSignal.any([signal, AbortSignal.timeout(timeLimit)]);
      const answer = await withRetries(() => callModel({ model: asked, options, signal: until, timeLimit }), {
        name: llm,
        maxRetries: MAX_RETRIES,
        signal: until,
        now,
        random,
        policy: backoff ?? MODEL_BACKOFF,
      });
      return readAnswer(answer).text;
    },
  };
}
