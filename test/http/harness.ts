/** A server on a real socket, and functions to call it. */
import { request as httpRequest } from "node:http";
import type { Authenticator, Role } from "../../src/auth/index.js";
import { Mailroom, type MailroomOptions } from "../../src/library/mailroom.js";
import { createListener, type TestListener, type TestListenerOptions } from "../kit/listener.js";
import { captureSwarm } from "./swarm.js";

export interface Harness {
  readonly url: string;
  readonly mailroom: Mailroom;
  readonly server: TestListener;
  call(path: string, options?: CallOptions): Promise<Reply>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged. */
  readonly text?: string;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly body: unknown;
}

/** Tokens as in the recordings: `<role>-token` or `<role>-token-<id>`; all others are invalid. */
export const testAuthenticator: Authenticator = {
  async authenticate(bearer) {
    if (bearer === undefined) return { ok: false, reason: "missing", detail: "no API key provided" };
    const match = /^(user|admin|agent|member)-token(?:-(.+))?$/.exec(bearer);
    const role = match?.[1];
    if (role === undefined) return { ok: false, reason: "unknown", detail: "invalid API key" };
    return { ok: true, principal: { role: roleOf(role), id: idOf(role, match?.[2]), provider: "token" } };
  },
};

function idOf(role: string, suffix: string | undefined): string {
  if (suffix === undefined) return role === "user" ? "alice" : `${role}-1`;
  return role === "user" ? `user-${suffix}` : suffix;
}

function roleOf(text: string): Role {
  return text === "user" || text === "admin" || text === "agent" ? text : "member";
}

export async function startServer(
  options: Partial<TestListenerOptions> & { readonly room?: Partial<MailroomOptions> } = {},
): Promise<Harness> {
  const { room, ...rest } = options;
  const mailroom = await Mailroom.open({ swarm: captureSwarm(), data: false, onProblem: () => {}, ...room });
  const server = await createListener({
    mailroom,
    authenticator: testAuthenticator,
    version: "0.0.0",
    ...rest,
  });
  const url = await server.listen();
  return {
    url,
    mailroom,
    server,
    call: (path, request) => call(url, path, request),
    async close() {
      await server.close();
      await mailroom.close({ grace: 0 });
    },
  };
}

/** `fetch` sends no body with GET, but the reference's client does. */
export function call(url: string, path: string, options: CallOptions = {}): Promise<Reply> {
  const { method = options.json === undefined && options.text === undefined ? "GET" : "POST", token } =
    options;
  const text = options.text ?? (options.json === undefined ? undefined : JSON.stringify(options.json));
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url + path,
      {
        method,
        agent: false,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(text !== undefined && {
            "content-type": "application/json",
            "content-length": String(Buffer.byteLength(text)),
          }),
          ...options.headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const answer = Buffer.concat(chunks).toString("utf8");
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: answer,
            body: parse(answer),
          });
        });
      },
    );
    request.on("error", reject);
    request.end(text);
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface StreamedEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: unknown;
}

export function parseStream(text: string): StreamedEvent[] {
  return text
    .split("\r\n\r\n")
    .filter((block) => block.includes("data: "))
    .map((block) => {
      const lines = block.split("\r\n");
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      return { id: field("id"), event: field("event") ?? "message", data: parse(field("data") ?? "") };
    });
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function fieldOf(value: unknown, ...path: readonly string[]): unknown {
  let at: unknown = value;
  for (const name of path) {
    if (Array.isArray(at)) at = at[Number(name)];
    else at = isObject(at) ? at[name] : undefined;
  }
  return at;
}

/** Resolves after `open`, for tests that control how long something takes. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
