/** The providers as a `fetch` function: they refuse what breaks a rule, and answer as the test defines. No sockets. */
import { chat } from "./chat.js";
import { google } from "./google.js";
import { messages } from "./messages.js";
import type { Behaviour, Request as Seen } from "./model-server.js";
import { responses } from "./responses.js";
import { type Issued, prefixOf, RULES, type WireName } from "./rules.js";
import { type Asked, type Format, type Json, list, type Reply, record } from "./wire.js";

const FORMATS: Readonly<Record<WireName, Format>> = {
  chat,
  deepseek: chat,
  responses,
  anthropic: messages,
  gemini: google,
};

export const URL_OF = "http://provider.test/v1";

export type StrictRequest = Omit<Seen, "headers" | "newest"> & {
  readonly wire: WireName;
  /** `Headers` of the call. */
  readonly headers: Headers;
};

export type StrictModel = (request: StrictRequest, count: number) => Behaviour | Promise<Behaviour>;

export class StrictProviders {
  readonly issued: Issued = { signatures: new Map() };
  /** Complaints about requests; must stay empty. */
  readonly refused: string[] = [];
  readonly requests: StrictRequest[] = [];
  count = 0;
  model: StrictModel;
  /** Keep requests for the test to look at. */
  keeps = true;

  constructor(model: StrictModel) {
    this.model = model;
  }

  /** For `ModelEnvironment`. */
  get environment() {
    return {
      env: {
        OPENAI_API_KEY: "sk-openai",
        OPENAI_BASE_URL: URL_OF,
        ANTHROPIC_API_KEY: "sk-anthropic",
        ANTHROPIC_BASE_URL: URL_OF,
        GEMINI_API_KEY: "sk-google",
        GOOGLE_GEMINI_BASE_URL: URL_OF,
      },
      fetch: this.fetch,
      backoff: { base: 1, factor: 1, cap: 1, jitter: 0 },
    };
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const signal = init?.signal ?? undefined;
    const body = record(JSON.parse(typeof init?.body === "string" ? init.body : "{}"));
    const wire = wireOf(url, body);
    const format = FORMATS[wire];
    const count = ++this.count;
    const complaint = this.#complaintAbout(wire, body);
    if (complaint !== undefined) {
      this.refused.push(`${wire}: ${complaint}`);
      return failure(format, 400, complaint);
    }
    let asked: Asked;
    try {
      asked = format.read(body, url);
    } catch (error) {
      this.refused.push(`${wire}: ${String(error)}`);
      return failure(format, 400, String(error));
    }
    const agent = /Your name is "([^"]+)"/.exec(asked.system)?.[1] ?? "";
    const request: StrictRequest = { ...asked, wire, agent, headers: new Headers(init?.headers) };
    if (this.keeps) this.requests.push(request);
    const behaviour = await this.model(request, count);
    signal?.throwIfAborted();
    if ("silent" in behaviour) return await never(signal);
    if ("status" in behaviour) return failure(format, behaviour.status, behaviour.message, behaviour.headers);
    return this.#answer(wire, format, asked, behaviour, String(count));
  };

  #complaintAbout(wire: WireName, body: Json): string | undefined {
    for (const { id, check } of RULES[wire]) {
      const complaint = check(body, this.issued);
      if (complaint !== undefined) return `${id}: ${complaint}`;
    }
    return undefined;
  }

  #answer(
    wire: WireName,
    format: Format,
    asked: Asked,
    behaviour: Reply | Extract<Behaviour, { cutAfter: number }>,
    id: string,
  ): Response {
    const given = "cutAfter" in behaviour ? behaviour.reply : behaviour;
    // Reasoning is unique, and so are the signatures that are made of it.
    const reply = given.reasoning === undefined ? given : { ...given, reasoning: `${given.reasoning} ${id}` };
    if (reply.reasoning !== undefined) this.#issue(wire, asked.body, reply);
    if (!asked.stream) {
      return "cutAfter" in behaviour
        ? failure(format, 500, "internal error")
        : Response.json(format.whole(reply, id));
    }
    const frames = format.frames(reply, id);
    const sent = "cutAfter" in behaviour ? frames.slice(0, behaviour.cutAfter) : frames;
    return new Response(sent.join(""), { headers: { "content-type": "text/event-stream" } });
  }

  #issue(wire: WireName, body: Json, reply: Reply): void {
    const { signatures } = this.issued;
    switch (wire) {
      case "chat":
      case "deepseek":
        return;
      case "responses":
        signatures.set(`sealed:${reply.reasoning}`, "");
        return;
      case "anthropic":
        signatures.set(`signed:${reply.reasoning}`, prefixOf(body, list(body.messages).length));
        return;
      case "gemini":
        signatures.set(`signed:${reply.reasoning}`, "");
    }
  }
}

function wireOf(url: string, body: Json): WireName {
  if (responses.path.test(url)) return "responses";
  if (messages.path.test(url)) return "anthropic";
  if (google.path.test(url)) return "gemini";
  return String(body.model).startsWith("deepseek") ? "deepseek" : "chat";
}

function failure(
  format: Format,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json(format.error(status, message), { status, headers });
}

function never(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
