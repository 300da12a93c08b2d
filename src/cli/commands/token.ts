/** `mailroom token`: through the running server, or directly in the store. */
import { z } from "zod";
import { type CreatedToken, ROLES, roleOf, type TokenInfo, Tokens } from "../../auth/index.js";
import { MailroomError, systemClock } from "../../base/index.js";
import type { LocalServer } from "../../server/control.js";
import { allTokens, atServerOr, TOKENS_PATH } from "../../server/control.js";
import { openStore } from "../../store/index.js";
import { resolveDataDirectory } from "../data-directory.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { DataOptions } from "../options.js";
import { requireData } from "../tasks/offline.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

const Info = z.object({
  tokenId: z.string(),
  role: z.enum(ROLES),
  id: z.string(),
  label: z.string().exactOptional(),
  createdAt: z.number(),
  lastUsedAt: z.number().exactOptional(),
  revokedAt: z.number().exactOptional(),
});
const Created = z.object({ token: z.string(), info: Info });
const List = z.object({ tokens: z.array(Info) });

interface TokenSource {
  create(request: { role: (typeof ROLES)[number]; id: string; label?: string }): Promise<CreatedToken>;
  list(): Promise<readonly TokenInfo[]>;
  revoke(id: string): Promise<void>;
}

export interface CreateOptions extends DataOptions {
  readonly role: string;
  readonly id: string;
  readonly label?: string;
}

export async function createToken(options: CreateOptions, terminal: Terminal): Promise<ExitCode> {
  const role = roleOf(options.role);
  if (role === undefined) {
    throw new MailroomError("usage", `unknown role '${options.role}'`, {
      details: { hint: `the roles are: ${ROLES.join(", ")}` },
    });
  }
  const { id, label } = options;
  const { token, info } = await withSource(options, terminal, (source) =>
    source.create({ role, id, ...(label !== undefined && { label }) }),
  );
  if (options.json === true) terminal.json({ token, token_id: info.tokenId, role, id });
  else {
    // Prints only the token on standard output, for TOKEN=$(mailroom token create …)
    terminal.out(token);
    terminal.note(`the token is shown only once; revoke it with 'mailroom token revoke ${info.tokenId}'`);
  }
  return EXIT.ok;
}

export async function listTokens(options: DataOptions, terminal: Terminal): Promise<ExitCode> {
  const tokens = await withSource(options, terminal, (source) => source.list(), requireData);
  if (options.json === true) terminal.json({ tokens });
  else if (tokens.length === 0) terminal.out("no tokens");
  else for (const token of tokens) terminal.out(line(token, terminal));
  return EXIT.ok;
}

export async function revokeToken(id: string, options: DataOptions, terminal: Terminal): Promise<ExitCode> {
  await withSource(options, terminal, (source) => source.revoke(id), requireData);
  if (options.json === true) terminal.json({ status: "revoked" });
  else terminal.out("revoked");
  return EXIT.ok;
}

async function withSource<T>(
  options: DataOptions,
  terminal: Terminal,
  work: (source: TokenSource) => Promise<T>,
  check: (data: string) => void = () => {},
): Promise<T> {
  const { data } = await resolveDataDirectory(options, terminal);
  const withServer = async (server: LocalServer) => {
    try {
      return await work(remoteTokens(server.fetch));
    } finally {
      await server.close();
    }
  };
  const notify = (line: string) => terminal.note(line);
  return atServerOr(data, notify, withServer, async () => {
    check(data);
    return inStore(data, notify, work);
  });
}

async function inStore<T>(
  data: string,
  notify: (line: string) => void,
  work: (source: TokenSource) => Promise<T>,
): Promise<T> {
  const store = await openStore({ directory: data });
  notify(`no server is running on ${data}: using its store`);
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

function remoteTokens(fetch: (url: string, init: RequestInit) => Promise<Response>): TokenSource {
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`http://localhost${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer: unknown = await response.json();
    if (response.ok) return answer;
    const detail = typeof answer === "object" && answer !== null && "detail" in answer ? answer.detail : "";
    throw new MailroomError("refused", String(detail));
  };
  return {
    create: async (request) => readCreated(await call("POST", TOKENS_PATH, request)),
    list: async () => readTokens(await call("GET", TOKENS_PATH)),
    revoke: async (token) => void (await call("POST", `${TOKENS_PATH}/revoke`, { token })),
  };
}

function line(token: TokenInfo, { colors }: Terminal): string {
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);
  const used = token.lastUsedAt === undefined ? "never used" : `used ${day(token.lastUsedAt)}`;
  const state = token.revokedAt === undefined ? used : colors.red(`revoked ${day(token.revokedAt)}`);
  const label = token.label === undefined ? "" : `  ${escapeControlCharacters(token.label)}`;
  return `${token.tokenId}  ${token.role}:${escapeControlCharacters(token.id)}  created ${day(token.createdAt)}  ${state}${label}`;
}

function readCreated(value: unknown): CreatedToken {
  return Created.parse(value);
}

function readTokens(value: unknown): readonly TokenInfo[] {
  return List.parse(value).tokens;
}
