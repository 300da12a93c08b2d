/** The shared parts of the model server's wire formats. */

/** A conversation, independent of the format. */
export interface Said {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: unknown }[];
  readonly results: readonly { readonly id: string; readonly content: string }[];
  /** Signed or encrypted reasoning that the agent sent back. */
  readonly reasoning: readonly string[];
}

export interface Asked {
  readonly system: string;
  readonly said: readonly Said[];
  readonly tools: readonly string[];
  /** `auto`, `required`, or the name of the tool that must be called. */
  readonly toolChoice: string | undefined;
  readonly stream: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Reply {
  readonly text?: string;
  readonly refusal?: string;
  readonly reasoning?: string;
  readonly calls?: readonly {
    readonly name: string;
    readonly args?: object;
    /** Sent unchanged instead of `args`. */
    readonly raw?: string;
    readonly id?: string;
  }[];
  readonly finish?: "length" | "content_filter";
  readonly usage?: { readonly input: number; readonly output: number; readonly cached?: number };
}

/** A wire format: parses and checks requests, and writes replies. */
export interface Format {
  readonly path: RegExp;
  /** @param url the request's URL */
  read(body: Readonly<Record<string, unknown>>, url: string): Asked;
  whole(reply: Reply, id: string): unknown;
  /** The frames of a streamed reply. */
  frames(reply: Reply, id: string): readonly string[];
  error(status: number, message: string): unknown;
}

export type Json = Readonly<Record<string, unknown>>;

export function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export function list(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(record) : [];
}

export function words(value: unknown): string {
  if (typeof value === "string") return value;
  return list(value)
    .map((part) => (typeof part.text === "string" ? part.text : ""))
    .join("");
}

export function argumentsOf(call: NonNullable<Reply["calls"]>[number]): string {
  return call.raw ?? JSON.stringify(call.args ?? {});
}

export function callId(reply: string, call: NonNullable<Reply["calls"]>[number], index: number): string {
  return call.id ?? `call_${reply}_${index}`;
}

export function frame(data: unknown, event?: string): string {
  const name = event === undefined ? "" : `event: ${event}\n`;
  return `${name}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}

/** Checks the rules that all providers share. @throws Error with a provider's message */
export function checkPairing(said: readonly Said[]): void {
  const seen = new Set<string>();
  for (const [at, { calls, results }] of said.entries()) {
    for (const { id } of calls) {
      if (seen.has(id)) throw new Error(`duplicate call id ${id}`);
      seen.add(id);
    }
    const next = said[at + 1]?.results.map(({ id }) => id) ?? [];
    const wanted = calls.map(({ id }) => id);
    if (calls.length > 0 && wanted.join() !== next.join()) {
      throw new Error(`calls ${wanted.join()} are answered by ${next.join() || "nothing"}`);
    }
    if (results.length > 0 && (said[at - 1]?.calls.length ?? 0) === 0) {
      throw new Error(`results ${results.map(({ id }) => id).join()} belong to no call`);
    }
  }
}
