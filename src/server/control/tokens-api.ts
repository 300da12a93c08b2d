/** Tokens over the control socket. There is no way to make one over the network. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { roleOf, type Tokens } from "../../auth/index.js";
import { describeError, hasCode, MailroomError } from "../../base/index.js";

export const TOKENS_PATH = "/control/tokens";

/** @returns whether the request was one for tokens, and was answered */
export async function serveTokens(
  tokens: Tokens,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  const path = new URL(request.url ?? "/", "http://control").pathname;
  if (path !== TOKENS_PATH && !path.startsWith(`${TOKENS_PATH}/`)) return false;
  try {
    const answer = await handle(tokens, request.method ?? "GET", path, request);
    if (answer === undefined) send(response, 404, { detail: "there is no such path", code: "not_found" });
    else send(response, 200, answer);
  } catch (error) {
    if (!hasCode(error, "bad_token_request", "unknown_token")) throw error;
    send(response, describeError(error.code).status, { detail: error.message, code: error.code });
  }
  return true;
}

async function handle(
  tokens: Tokens,
  method: string,
  path: string,
  request: IncomingMessage,
): Promise<unknown> {
  if (method === "GET" && path === TOKENS_PATH) return { tokens: await allTokens(tokens) };
  if (method !== "POST") return undefined;
  const body = parseObject(await text(request));
  if (path === TOKENS_PATH) {
    const role = roleOf(body.role);
    if (role === undefined) throw new MailroomError("bad_token_request", "unknown role");
    const label = typeof body.label === "string" ? body.label : undefined;
    return tokens.create({ role, id: String(body.id ?? ""), ...(label !== undefined && { label }) });
  }
  if (path === `${TOKENS_PATH}/revoke`) {
    await tokens.revoke(String(body.token ?? ""));
    return { status: "revoked" };
  }
  return undefined;
}

export async function allTokens(tokens: Tokens) {
  const all = [];
  let cursor: number | undefined;
  do {
    const page = await tokens.list(cursor === undefined ? {} : { cursor });
    all.push(...page.tokens);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}

function parseObject(content: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(content);
    if (typeof value === "object" && value !== null) return { ...value };
  } catch {
    // Said below.
  }
  throw new MailroomError("bad_token_request", "the body is not a JSON object");
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
