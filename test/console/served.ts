/** A real server for a test of the console, and what the tests ask of it past the page. */
import type { Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { createServer, type MailroomServer, type ServerOptions } from "../../src/server/index.js";

export interface Journal {
  readonly key: string;
  readonly status: string;
  readonly number: number;
  readonly entries: readonly ({ readonly n: number; readonly t: string } & Readonly<
    Record<string, unknown>
  >)[];
}

export class Served {
  readonly server: MailroomServer;
  readonly url: string;

  constructor(server: MailroomServer, url: string) {
    this.server = server;
    this.url = url;
  }

  /** @param token in development mode the principal, such as `user:ann` */
  async call<T>(path: string, token: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    expect(response.ok, text).toBe(true);
    return JSON.parse(text);
  }

  async post(token: string, body: string, more: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const answer = await this.call<{ task_id: string }>("/message", token, { body, wait: false, ...more });
    return answer.task_id;
  }

  journal(token: string, id: string): Promise<Journal> {
    return this.call(`/tasks/${id}/journal?limit=1000`, token);
  }

  async until(token: string, id: string, status: string): Promise<Journal> {
    await expect.poll(async () => (await this.journal(token, id)).status, { timeout: 20_000 }).toBe(status);
    return await this.journal(token, id);
  }
}

/** Closed when the test has finished. */
export async function serve(options: ServerOptions): Promise<Served> {
  const settings = { log: { level: "silent" }, ...options.settings } as const;
  const server = await createServer({ data: false, ...options, settings });
  onTestFinished(() => server.close(0));
  return new Served(server, await server.listen({ port: 0 }));
}

/** Resolves when the page has taken the token, or has said why not. */
export async function signIn(page: Page, token: string): Promise<void> {
  const field = page.getByLabel("Token");
  await field.fill(token);
  await field.press("Enter");
}
