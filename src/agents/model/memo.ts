/**
 * Data that a provider requires with an earlier answer of its model: signed or encrypted reasoning, signatures of
 * calls, and the corrections before the answer. Journaled with the answer (`memo`), so that a task continues after a
 * restart.
 */
import { z } from "zod";
import type { WireFormat } from "./connection.js";
import type { Content } from "./language-model.js";

const Options = z.record(z.string(), z.record(z.string(), z.json()));

const Reasoning = z.object({ text: z.string(), options: Options.exactOptional() });

/** Reasoning, and the hash of the prompt before it: some providers accept it after the same prompt only. */
const Reasoned = z.object({
  reasoning: z.array(Reasoning),
  prefix: z.string().exactOptional(),
});
export type Reasoned = z.infer<typeof Reasoned>;

/** An answer that could not be used, and what the model was told. It stays in the prompt. */
const Correction = Reasoned.extend({
  text: z.string().exactOptional(),
  calls: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      args: z.record(z.string(), z.json()),
      result: z.string(),
      options: Options.nullable(),
    }),
  ),
  /** Said to the model when there are no results to say it with. */
  says: z.string().exactOptional(),
});
export type Correction = z.infer<typeof Correction>;

const Memo = Reasoned.extend({
  /** The model that wrote it. Signatures are not valid for another model. */
  model: z.string(),
  /** One for each call of the answer, in order. */
  calls: z.array(Options.nullable()),
  corrections: z.array(Correction).exactOptional(),
  /** The provider rejected the reasoning of earlier answers: it is never sent again. */
  alone: z.boolean().exactOptional(),
});
export type Memo = z.infer<typeof Memo>;

export interface MemoParts {
  readonly content: readonly Content[];
  readonly calls: readonly Extract<Content, { type: "tool-call" }>[];
  readonly model: string;
  readonly format: WireFormat;
  /** The hash of the prompt, if the model's reasoning is bound to it. */
  readonly prefix: string | undefined;
  readonly corrections: readonly Correction[];
  readonly alone: boolean;
}

/** Undefined if there is nothing to keep. */
export function memoOf({
  content,
  calls,
  model,
  format,
  prefix,
  corrections,
  alone,
}: MemoParts): Memo | undefined {
  const reasoned = reasonedOf(content, format, prefix);
  const signed = calls.map(optionsOf);
  const isEmpty = reasoned.reasoning.length === 0 && signed.every((options) => options === null);
  if (isEmpty && corrections.length === 0 && !alone) return undefined;
  return {
    model,
    ...reasoned,
    calls: signed,
    ...(corrections.length > 0 && { corrections: [...corrections] }),
    ...(alone && { alone }),
  };
}

/** Compatible servers return reasoning as plain text and some require it back; others sign it. */
export function reasonedOf(
  content: readonly Content[],
  format: WireFormat,
  prefix: string | undefined,
): Reasoned {
  const reasoning = content.flatMap((part) => {
    if (part.type !== "reasoning") return [];
    const options =
      part.providerMetadata === undefined ? undefined : Options.safeParse(part.providerMetadata);
    if (options?.success === true) return [{ text: part.text, options: options.data }];
    return format === "compatible-chat" && part.text !== "" ? [{ text: part.text }] : [];
  });
  return reasoning.length > 0 && prefix !== undefined ? { reasoning, prefix } : { reasoning };
}

export function optionsOf({
  providerMetadata,
}: Extract<Content, { type: "tool-call" }>): z.infer<typeof Options> | null {
  return providerMetadata === undefined ? null : (Options.safeParse(providerMetadata).data ?? null);
}

/** Undefined if the memo is absent or belongs to another model. */
export function readMemo(memo: unknown, model: string): Memo | undefined {
  if (memo === undefined) return undefined;
  const read = Memo.safeParse(memo);
  return read.success && read.data.model === model ? read.data : undefined;
}
