/**
 * What a provider wants to see again with an answer of its model: signed or encrypted reasoning, signatures of calls.
 * Journaled with the answer (`AgentAnswer.memo`), so that a task goes on after a restart as if nothing had happened.
 */
import { z } from "zod";
import type { Content } from "./language-model.js";

const Options = z.record(z.string(), z.record(z.string(), z.json()));

const Memo = z.object({
  /** Whose it is: signatures mean nothing to another model. */
  model: z.string(),
  reasoning: z.array(z.object({ text: z.string(), options: Options.exactOptional() })),
  /** One for each call of the answer, in order. */
  calls: z.array(Options.nullable()),
});
export type Memo = z.infer<typeof Memo>;

/** Nothing, if the provider attached nothing. */
export function memoOf(
  content: readonly Content[],
  calls: readonly Extract<Content, { type: "tool-call" }>[],
  model: string,
): Memo | undefined {
  const reasoning = content.flatMap((part) => {
    if (part.type !== "reasoning" || part.providerMetadata === undefined) return [];
    const options = Options.safeParse(part.providerMetadata);
    return options.success ? [{ text: part.text, options: options.data }] : [];
  });
  const signed = calls.map(({ providerMetadata }) =>
    providerMetadata === undefined ? null : (Options.safeParse(providerMetadata).data ?? null),
  );
  if (reasoning.length === 0 && signed.every((options) => options === null)) return undefined;
  return { model, reasoning, calls: signed };
}

/** Nothing, if there is none or it belongs to another model. */
export function readMemo(memo: unknown, model: string): Memo | undefined {
  if (memo === undefined) return undefined;
  const read = Memo.safeParse(memo);
  return read.success && read.data.model === model ? read.data : undefined;
}
