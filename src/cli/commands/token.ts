/** `mailroom token`: through the running server if there is one, else straight in the store. */
import { type CreatedToken, ROLES, roleOf, type TokenInfo, Tokens } from "../../auth/index.js";
import { systemClock } from "../../library/clock.js";
import { openStore } from "../../store/index.js";
import { atServerOr } from "../control/patience.js";
import type { LocalServer } from "../control/reach.js";
import { allTokens, TOKENS_PATH } from "../control/tokens-api.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import type { PlaceOptions } from "../options.js";
import { placeFor } from "../place.js";
import { requireData } from "../store-desk.js";
import { harmless, type Terminal } from "../terminal.js";
import { readCreated, readTokens } from "./token-answers.js";

interface TokenDesk {
  create(request: { role: (typeof ROLES)[number]; id: string; label?: string }): Promise<CreatedToken>;
  list(): Promise<readonly TokenInfo[]>;
  revoke(id: string): Promise<void>;
}

export interface CreateOptions extends PlaceOptions {
  readonly role: string;
  readonly id: string;
  readonly label?: string;
}

export async function createToken(options: CreateOptions, terminal: Terminal): Promise<ExitCode> {
  const role = roleOf(options.role);
  if (role === undefined) {
    throw new CliError("usage", `there is no role '${options.role}'`, {
      exit: EXIT.usage,
      hint: `the roles are: ${ROLES.join(", ")}`,
    });
  }
  const { id, label } = options;
  const { token, info } = await atDesk(options, terminal, (desk) =>
    desk.create({ role, id, ...(label !== undefined && { label }) }),
  );
  if (options.json === true) terminal.json({ token, token_id: info.tokenId, role, id });
  else {
    // The token alone on standard output, so that it can be caught: TOKEN=$(mailroom token create …)
    terminal.out(token);
    terminal.note(
      `this is the only time it is shown; revoke it with 'mailroom token revoke ${info.tokenId}'`,
    );
  }
  return EXIT.ok;
}

export async function listTokens(options: PlaceOptions, terminal: Terminal): Promise<ExitCode> {
  const tokens = await atDesk(options, terminal, (desk) => desk.list(), requireData);
  if (options.json === true) terminal.json({ tokens });
  else if (tokens.length === 0) terminal.out("no tokens");
  else for (const token of tokens) terminal.out(line(token, terminal));
  return EXIT.ok;
}

export async function revokeToken(id: string, options: PlaceOptions, terminal: Terminal): Promise<ExitCode> {
  await atDesk(options, terminal, (desk) => desk.revoke(id), requireData);
  if (options.json === true) terminal.json({ status: "revoked" });
  else terminal.out("revoked");
  return EXIT.ok;
}

async function atDesk<T>(
  options: PlaceOptions,
  terminal: Terminal,
  work: (desk: TokenDesk) => Promise<T>,
  check: (data: string) => void = () => {},
): Promise<T> {
  const { data } = await placeFor(options, terminal);
  const withServer = async (server: LocalServer) => {
    try {
      return await work(remoteDesk(server.fetch));
    } finally {
      await server.close();
    }
  };
  const say = (line: string) => terminal.note(line);
  return atServerOr(data, say, withServer, async () => {
    check(data);
    return inStore(data, say, work);
  });
}

async function inStore<T>(
  data: string,
  say: (line: string) => void,
  work: (desk: TokenDesk) => Promise<T>,
): Promise<T> {
  const store = await openStore({ directory: data });
  say(`no server runs on ${data}: working on its store`);
  try {
    const tokens = new Tokens({ store, clock: systemClock });
    return await work({
      create: (request) => tokens.create(request),
      list: () => allTokens(tokens),
      revoke: (id) => tokens.revoke(id),
    });
  } finally {
    await store.close();
  }
}

function remoteDesk(fetch: (url: string, init: RequestInit) => Promise<Response>): TokenDesk {
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`http://localhost${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer: unknown = await response.json();
    if (response.ok) return answer;
    const detail = typeof answer === "object" && answer !== null && "detail" in answer ? answer.detail : "";
    throw new CliError("refused", String(detail));
  };
  return {
    create: async (request) => readCreated(await call("POST", TOKENS_PATH, request)),
    list: async () => readTokens(await call("GET", TOKENS_PATH)),
    revoke: async (token) => void (await call("POST", `${TOKENS_PATH}/revoke`, { token })),
  };
}

function line(token: TokenInfo, { colours }: Terminal): string {
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);
  const used = token.lastUsedAt === undefined ? "never used" : `used ${day(token.lastUsedAt)}`;
  const state = token.revokedAt === undefined ? used : colours.red(`revoked ${day(token.revokedAt)}`);
  const label = token.label === undefined ? "" : `  ${harmless(token.label)}`;
  return `${token.tokenId}  ${token.role}:${harmless(token.id)}  made ${day(token.createdAt)}  ${state}${label}`;
}
