/** Writes that may come with an `Idempotency-Key`. */
import type { FastifyRequest } from "fastify";
import type { Outcome, PostedAt, Runtime } from "../engine/runtime/index.js";
import { HttpError } from "./errors.js";
import {
  Idempotency,
  type IdempotencyParts,
  type OnceRequest,
  type Remember,
  readIdempotencyKey,
} from "./idempotency.js";
import type { Answer, Caller } from "./route.js";
import type { WriteReference } from "./state.js";

/** Something posted to a task, and what becomes of it. */
export interface PostedRound extends PostedAt {
  readonly outcome: Promise<Outcome>;
}

export class Writes {
  readonly #rounds: Idempotency<PostedRound>;
  readonly #answers: Idempotency<Answer>;

  constructor(parts: IdempotencyParts, runtime: Runtime) {
    this.#rounds = new Idempotency(parts, async (reference) => recallRound(runtime, reference));
    this.#answers = new Idempotency(parts, async (reference) => recallAnswer(reference));
  }

  /** Posts to a task. The same key gives the same round, also after a restart. */
  round(
    call: WriteCall,
    write: (rows: (at: PostedAt) => ReturnType<Remember>) => Promise<PostedRound>,
  ): Promise<{ readonly result: PostedRound; readonly replayed: boolean }> {
    return this.#rounds.once(onceRequest(call), (remember) =>
      write(({ key, taskId, messageId, number }) =>
        remember({ kind: "round", key, taskId, messageId, number }),
      ),
    );
  }

  /** Does anything else; the answer is known before it is done, and kept with it. */
  async answer(call: WriteCall, write: (remember: Remember) => Promise<Answer>): Promise<Answer> {
    const { result, replayed } = await this.#answers.once(onceRequest(call), write);
    return replayed ? { ...result, headers: { ...result.headers, ...REPLAYED } } : result;
  }
}

export const REPLAYED = { "idempotency-replayed": "true" } as const;

export interface WriteCall {
  readonly request: FastifyRequest;
  readonly caller: Caller;
  readonly route: string;
  readonly params: unknown;
  readonly body: unknown;
}

function onceRequest({ request, caller, route, params, body }: WriteCall): OnceRequest | undefined {
  const key = readIdempotencyKey(request.headers["idempotency-key"]);
  if (key === undefined) return undefined;
  const { role, id } = caller.principal;
  return { scope: { role, id, route, key }, content: { params, body } };
}

async function recallRound(runtime: Runtime, reference: WriteReference): Promise<PostedRound> {
  if (reference.kind !== "round") throw strange();
  const { kind: _, ...at } = reference;
  const outcome = runtime.outcomeOf(at);
  // Whoever does not look (a stream, `wait: false`) must not bring the process down.
  outcome.catch(() => {});
  return { ...at, outcome };
}

function recallAnswer(reference: WriteReference): Answer {
  if (reference.kind !== "answer") throw strange();
  return { status: reference.status, body: reference.body };
}

function strange(): HttpError {
  return new HttpError("internal_error", "what was kept under this key belongs to another kind of write");
}
