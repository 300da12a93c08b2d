/** Makes one call of a model, streamed or not, within its time limit. */
import { MAX_ANSWER_BYTES } from "./bounded.js";
import { brokenStream, modelTimedOut, tooLargeAnswer } from "./failures.js";
import type {
  CallOptions,
  Content,
  FinishReason,
  ModelUsage,
  SdkModel,
  StreamPart,
} from "./language-model.js";

export interface ModelAnswer {
  readonly content: readonly Content[];
  readonly finishReason: FinishReason;
  readonly usage: ModelUsage;
}

export interface CallParts {
  readonly model: SdkModel;
  readonly options: CallOptions;
  readonly signal: AbortSignal;
  /** Milliseconds. */
  readonly timeLimit: number;
  /** Receives each part of the answer as it arrives. Without it the answer is not streamed. */
  readonly onPart?: (part: StreamPart) => void;
}

export async function callModel({
  model,
  options,
  signal,
  timeLimit,
  onPart,
}: CallParts): Promise<ModelAnswer> {
  // One controller with a timer that is cleared. `AbortSignal.any` and `.timeout` cost more than the rest of a turn,
  // and the timer of `.timeout` runs for the whole limit even after the answer.
  const stop = new AbortController();
  const passOn = (): void => stop.abort(signal.reason);
  if (signal.aborted) passOn();
  signal.addEventListener("abort", passOn, { once: true });
  const timer = setTimeout(() => stop.abort(modelTimedOut(timeLimit)), timeLimit);
  const call = { ...options, abortSignal: stop.signal };
  try {
    if (onPart === undefined) return await model.doGenerate(call);
    const { stream } = await model.doStream(call);
    return await collect(stream, onPart);
  } catch (error) {
    signal.throwIfAborted();
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", passOn);
  }
}

/** Assembles a streamed answer. @throws MailroomError `model_failed` when the stream has no end */
async function collect(
  stream: ReadableStream<StreamPart>,
  onPart: (part: StreamPart) => void,
): Promise<ModelAnswer> {
  const content: Content[] = [];
  const open = new Map<string, GrowingPart>();
  let end: Pick<ModelAnswer, "finishReason" | "usage"> | undefined;
  let size = 0;
  const begin = (id: string, part: GrowingPart): void => {
    open.set(id, part);
    content.push(part);
  };
  for await (const part of stream) {
    if ("delta" in part && typeof part.delta === "string") size += part.delta.length;
    if (size > MAX_ANSWER_BYTES) throw tooLargeAnswer(MAX_ANSWER_BYTES);
    onPart(part);
    switch (part.type) {
      case "text-start":
        begin(part.id, { type: "text", text: "" });
        break;
      case "reasoning-start":
        begin(part.id, withMetadata({ type: "reasoning", text: "" }, part.providerMetadata));
        break;
      case "text-delta":
      case "reasoning-delta": {
        const growing = open.get(part.id);
        if (growing !== undefined) {
          growing.text += part.delta;
          withMetadata(growing, part.providerMetadata);
        }
        break;
      }
      case "text-end":
      case "reasoning-end": {
        const ended = open.get(part.id);
        if (ended !== undefined) withMetadata(ended, part.providerMetadata);
        break;
      }
      case "tool-call":
        content.push(part);
        break;
      case "finish":
        end = { finishReason: part.finishReason, usage: part.usage };
        break;
      case "error":
        throw part.error instanceof Error ? part.error : brokenStream(part.error);
      default:
        // Not used: pieces of calls (complete calls follow), sources, files and raw parts.
        break;
    }
  }
  if (end === undefined) throw brokenStream("it ended without a finish reason");
  return { content, ...end };
}

type GrowingPart = Extract<Content, { type: "text" | "reasoning" }>;
type Metadata = Extract<Content, { type: "reasoning" }>["providerMetadata"];

function withMetadata(part: GrowingPart, metadata: Metadata): GrowingPart {
  if (metadata !== undefined) part.providerMetadata = metadata;
  return part;
}
