/** An HTTP client with prepared answers. */
import type { HttpClient, HttpResponse } from "../../src/net/index.js";
import { NetError } from "../../src/net/index.js";

export interface Scripted {
  readonly status?: number;
  readonly body?: unknown;
}

/** Looks up answers by URL; other URLs are unreachable. */
export class ScriptedClient implements HttpClient {
  readonly answers = new Map<string, Scripted>();
  readonly asked: string[] = [];

  async request(url: string | URL): Promise<HttpResponse> {
    const text = String(url);
    this.asked.push(text);
    const answer = this.answers.get(text);
    if (answer === undefined) throw new NetError("unreachable", "nobody answers", { url: text });
    const body = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body ?? {});
    return {
      status: answer.status ?? 200,
      headers: {},
      url: text,
      body: Buffer.from(body),
      text: () => body,
    };
  }

  async open(): Promise<never> {
    throw new Error("not used by these tests");
  }

  async close(): Promise<void> {}
}
