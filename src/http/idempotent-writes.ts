/** Writes that may have an `Idempotency-Key`. */
import { MailroomError } from "../base/index.js";
import type { JournalLocation, Runtime } from "../engine/index.js";
import type { Caller, PostedRound, RouteResponse } from "../extension/index.js";
import type { WriteReference } from "../store/index.js";
import {
  Idempotency,
  type IdempotencyParts,
  type OnceRequest,
  type Remember,
  readIdempotencyKey,
} from "./idempotency.js";

export class IdempotentWrites {
  readonly #rounds: Idempotency<PostedRound>;
  readonly #answers: Idempotency<RouteResponse>;

  constructor(parts: IdempotencyParts, runtime: Runtime) {
    this.#rounds = new Idempotency(parts, async (reference) => recallRound(runtime, reference));
    this.#answers = new Idempotency(parts, async (reference) => recallAnswer(reference));
  }

  /** Posts to a task. The same key returns the same round, also after a restart. */
  round(
    call: WriteCall,
    write: (rows: (at: JournalLocation) => ReturnType<Remember>) => Promise<PostedRound>,
  ): Promise<{ readonly result: PostedRound; readonly replayed: boolean }> {
    return this.#rounds.once(onceRequest(call), (remember) =>
      write(({ key, taskId, messageId, number }) =>
        remember({ kind: "round", key, taskId, messageId, number }),
      ),
    );
  }

  /** Performs any other write. Its response is known beforehand and stored with it. */
  async answer(
    call: WriteCall,
    write: (remember: Remember) => Promise<RouteResponse>,
  ): Promise<RouteResponse> {
    const { result, replayed } = await this.#answers.once(onceRequest(call), write);
    return replayed ? { ...result, headers: { ...result.headers, ...REPLAYED } } : result;
  }
}

export const REPLAYED = { "idempotency-replayed": "true" } as const;

export interface WriteCall {
  /** The header `Idempotency-Key`. */
  readonly key: string | readonly string[] | undefined;
  readonly caller: Caller;
  readonly route: string;
  readonly params: unknown;
  readonly body: unknown;
}

function onceRequest({ key: header, caller, route, params, body }: WriteCall): OnceRequest | undefined {
  const key = readIdempotencyKey(header);
  if (key === undefined) return undefined;
  const { role, id } = caller.principal;
  return { scope: { role, id, route, key }, content: { params, body } };
}

async function recallRound(runtime: Runtime, reference: WriteReference): Promise<PostedRound> {
  if (reference.kind !== "round") throw wrongKind();
  const { kind: _, ...at } = reference;
  const outcome = runtime.outcomeOf(at);
  // Prevents an unhandled rejection when no caller awaits it (a stream, `wait: false`).
  outcome.catch(() => {});
  return { ...at, outcome };
}

function recallAnswer(reference: WriteReference): RouteResponse {
  if (reference.kind !== "answer") throw wrongKind();
  return { status: reference.status, body: reference.body };
}

function wrongKind(): MailroomError {
  return new MailroomError("internal_error", "this Idempotency-Key belongs to another kind of write");
}
