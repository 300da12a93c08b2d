/**
 * A local HTTP server with the wire formats of model providers. It rejects histories that they would reject, and
 * answers as the test defines.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chat } from "./chat.js";
import { google } from "./google.js";
import { messages } from "./messages.js";
import { responses } from "./responses.js";
import { type Asked, checkPairing, type Format, type Reply, record } from "./wire.js";

export type Behaviour =
  | Reply
  /** An error of the provider. */
  | { readonly status: number; readonly message: string; readonly headers?: Readonly<Record<string, string>> }
  /** Never answers. */
  | { readonly silent: true }
  /** Sends this many frames of a stream, then closes the connection. */
  | { readonly cutAfter: number; readonly reply: Reply }
  /** Sends this many frames of a stream, and the rest later. */
  | (Reply & { readonly pauseAfter: number; readonly until: Promise<void> });

export interface Request extends Asked {
  readonly headers: IncomingMessage["headers"];
  /** The calling agent and its newest message. */
  readonly agent: string;
  readonly newest: string;
}

export type Model = (request: Request, count: number) => Behaviour | Promise<Behaviour>;

const FORMATS: readonly Format[] = [chat, responses, messages, google];

export class ModelServer {
  readonly requests: Request[] = [];
  /** Requests that a provider would have rejected; must stay empty. */
  readonly complaints: string[] = [];
  model: Model;
  readonly #server;
  #count = 0;

  private constructor(model: Model) {
    this.model = model;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        this.complaints.push(String(error));
        response.destroy();
      });
    });
  }

  static async start(model: Model = () => ({ text: "?" })): Promise<ModelServer> {
    const server = new ModelServer(model);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/v1`;
  }

  /** Directs agents of every provider to this server. */
  get env(): Record<string, string> {
    return {
      OPENAI_API_KEY: "sk-openai-secret",
      OPENAI_BASE_URL: this.url,
      ANTHROPIC_API_KEY: "sk-anthropic-secret",
      ANTHROPIC_BASE_URL: this.url,
      GEMINI_API_KEY: "sk-google-secret",
      GOOGLE_GEMINI_BASE_URL: this.url,
    };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const format = FORMATS.find(({ path }) => path.test(request.url ?? ""));
    if (format === undefined) {
      response.writeHead(404).end();
      return;
    }
    const body = record(JSON.parse(await textOf(request)));
    const fail = (status: number, message: string, headers = {}): void => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(format.error(status, message)));
    };
    let asked: Asked;
    try {
      asked = format.read(body, request.url ?? "");
      checkPairing(asked.said);
    } catch (error) {
      this.complaints.push(error instanceof Error ? error.message : String(error));
      fail(400, String(error));
      return;
    }
    const agent = /Your name is "([^"]+)"/.exec(asked.system)?.[1] ?? "";
    const newest = asked.said.at(-1);
    const seen: Request = {
      ...asked,
      headers: request.headers,
      agent,
      newest:
        newest === undefined ? "" : newest.text + newest.results.map(({ content }) => content).join("\n"),
    };
    this.requests.push(seen);
    const behaviour = await this.model(seen, this.requests.length);
    if ("silent" in behaviour) return;
    if ("status" in behaviour) {
      fail(behaviour.status, behaviour.message, behaviour.headers);
      return;
    }
    const id = String(++this.#count);
    const reply = "cutAfter" in behaviour ? behaviour.reply : behaviour;
    if (!asked.stream) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(format.whole(reply, id)));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const frames = format.frames(reply, id);
    if ("cutAfter" in behaviour) {
      response.write(frames.slice(0, behaviour.cutAfter).join(""), () => response.destroy());
      return;
    }
    if ("pauseAfter" in behaviour) {
      response.write(frames.slice(0, behaviour.pauseAfter).join(""));
      await behaviour.until;
      response.end(frames.slice(behaviour.pauseAfter).join(""));
      return;
    }
    response.end(frames.join(""));
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) if (Buffer.isBuffer(part)) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}
