/**
 * What models accept, by wire format and name. This is data: add a row when a provider releases or changes a model. The
 * first row that matches applies; the last row of each format has no pattern and describes the newest models, because
 * old names are known and new ones are not.
 */
import type { WireFormat } from "./connection.js";

/** Efforts of all providers, weakest first. */
export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof EFFORTS)[number];

export interface ModelTraits {
  /**
   * How thinking is controlled: by a budget of tokens, by a level of effort, or not at all. `adaptive` models think as
   * much as the effort allows, and `always` means that they cannot be kept from it.
   */
  readonly thinking: "none" | "budget" | "level" | "adaptive" | "always";
  /** Efforts that the model accepts. Others are replaced by the nearest weaker one, or the weakest. */
  readonly efforts: readonly Effort[];
  /** The provider rejects a request that forces a tool. */
  readonly freeToolChoice?: true;
  /** The provider rejects thinking that it returned after another system prompt, list of tools or history. */
  readonly boundThinking?: true;
  /** The provider rejects calls in a history without the reasoning before them. */
  readonly reasonedCalls?: true;
  /** The provider rejects calls in a history without its signature. */
  readonly signedCalls?: true;
}

interface Row extends ModelTraits {
  readonly model?: RegExp;
}

const CLAUDE: readonly Effort[] = ["low", "medium", "high", "xhigh"];

const ANTHROPIC: readonly Row[] = [
  { model: /claude-(?:2|3|instant)/, thinking: "budget", efforts: [] },
  {
    model: /claude-(?:opus|sonnet)-4-6/,
    thinking: "adaptive",
    efforts: ["low", "medium", "high", "max"],
  },
  { model: /claude-opus-4-[78]/, thinking: "adaptive", efforts: CLAUDE },
  { model: /claude-(?:opus|sonnet|haiku)-4/, thinking: "budget", efforts: [] },
  { model: /claude-haiku-5-5/, thinking: "adaptive", efforts: CLAUDE, boundThinking: true },
  { model: /claude-(?:opus|sonnet)-5(?!-5)/, thinking: "adaptive", efforts: CLAUDE },
  { model: /claude-(?:fable|mythos)-5(?!-\d)/, thinking: "always", efforts: CLAUDE },
  { thinking: "always", efforts: CLAUDE, freeToolChoice: true, boundThinking: true },
];

const GOOGLE: readonly Row[] = [
  { model: /gemini-(?:1|2\.0)/, thinking: "none", efforts: [] },
  { model: /gemini-2/, thinking: "budget", efforts: [] },
  { model: /gemini-3(?:\.\d)?-pro/, thinking: "level", efforts: ["low", "high"], signedCalls: true },
  { thinking: "level", efforts: ["minimal", "low", "medium", "high"], signedCalls: true },
];

const OPENAI: readonly Row[] = [
  { model: /^(?:gpt-[34]|chatgpt)/, thinking: "none", efforts: [] },
  { model: /^o\d/, thinking: "level", efforts: ["low", "medium", "high"] },
  { model: /^gpt-5(?:\.\d)?-pro/, thinking: "level", efforts: ["medium", "high", "xhigh"] },
  { model: /^gpt-5\.1/, thinking: "level", efforts: ["none", "low", "medium", "high"] },
  { model: /^gpt-5(?!\.)/, thinking: "level", efforts: ["minimal", "low", "medium", "high"] },
  { thinking: "level", efforts: ["none", "minimal", "low", "medium", "high", "xhigh"] },
];

/** Servers that speak OpenAI's protocol decide for themselves. */
const COMPATIBLE: readonly Row[] = [
  { model: /deepseek/i, thinking: "level", efforts: EFFORTS, reasonedCalls: true },
  { thinking: "level", efforts: EFFORTS },
];

const ROWS: Readonly<Record<WireFormat, readonly Row[]>> = {
  anthropic: ANTHROPIC,
  google: GOOGLE,
  "openai-chat": OPENAI,
  "openai-responses": OPENAI,
  "compatible-chat": COMPATIBLE,
};

/** @param model the provider's name for the model. */
export function traitsOf(format: WireFormat, model: string): ModelTraits {
  const row = ROWS[format].find(({ model: pattern }) => pattern === undefined || pattern.test(model));
  return row ?? { thinking: "none", efforts: [] };
}

/** The effort that the model accepts and that comes closest. Undefined if it accepts none. */
export function nearestEffort({ efforts }: ModelTraits, wanted: Effort): Effort | undefined {
  const limit = EFFORTS.indexOf(wanted);
  return efforts.findLast((effort) => EFFORTS.indexOf(effort) <= limit) ?? efforts[0];
}
