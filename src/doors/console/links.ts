/**
 * Links that sign in once. A process that can open the control socket gets a code; the browser exchanges it for a session whose
 * token is made for this purpose and revoked when the session ends.
 */
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";
import { roleOf, type Tokens } from "../../auth/index.js";
import { type Clock, hasCode, MailroomError } from "../../base/index.js";
import type { ControlOperation } from "../../extension/index.js";

export const CONSOLE_CONTROL_PATH = "/control/console";

/** Milliseconds in which a code can be used. */
const VALID_FOR = 60_000;
const MOST_CODES = 1_000;
const LABEL = "console link";

interface Holder {
  readonly role: "user" | "admin";
  readonly id: string;
}

interface Code extends Holder {
  readonly until: number;
}

export interface LinkParts {
  readonly tokens: Tokens;
  readonly clock: Pick<Clock, "now">;
  /** Milliseconds that a session lasts. */
  readonly lifetime: number;
  /** The console's own address, once the server listens. */
  readonly url: () => string;
  /** In development mode names are tokens. */
  readonly dev: boolean;
}

const Asked = z.object({ as: z.string().max(300).exactOptional() });

export class SignInLinks {
  readonly #parts: LinkParts;
  readonly #codes = new Map<string, Code>();

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  get control(): ControlOperation {
    return {
      path: CONSOLE_CONTROL_PATH,
      handle: async (request, response) => {
        try {
          if (request.method !== "POST") throw new MailroomError("bad_token_request", "use POST");
          send(response, 200, this.#create(await askedIn(request)));
        } catch (error) {
          if (!hasCode(error, "bad_token_request")) throw error;
          send(response, 400, { detail: error.message, code: error.code });
        }
      },
    };
  }

  /** Returns a bearer for a code, which is used up; nothing for an unknown one. */
  async redeem(text: string): Promise<string | undefined> {
    const name = nameOf(text);
    const code = this.#codes.get(name);
    this.#codes.delete(name);
    const { tokens, clock, dev } = this.#parts;
    if (code === undefined || code.until <= clock.now()) return undefined;
    const { role, id } = code;
    if (dev) return `${role}:${id}`;
    await this.#sweep();
    return (await tokens.create({ role, id, label: LABEL })).token;
  }

  /** Called when a session is ended: its token was made for it alone. */
  async signOut(tokenId: string | undefined): Promise<void> {
    if (tokenId === undefined) return;
    for await (const token of this.#made()) {
      if (token.tokenId === tokenId) await this.#parts.tokens.revoke(tokenId);
    }
  }

  /** Sessions end by themselves; their tokens would stay. */
  async #sweep(): Promise<void> {
    const { tokens, clock, lifetime } = this.#parts;
    for await (const { tokenId, createdAt } of this.#made()) {
      if (createdAt + lifetime < clock.now()) await tokens.revoke(tokenId);
    }
  }

  async *#made() {
    let cursor: number | undefined;
    do {
      const page = await this.#parts.tokens.list(cursor === undefined ? {} : { cursor });
      for (const token of page.tokens)
        if (token.label === LABEL && token.revokedAt === undefined) yield token;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
  }

  #create(holder: Holder): object {
    const { clock, url } = this.#parts;
    const now = clock.now();
    for (const [name, { until }] of this.#codes) if (until <= now) this.#codes.delete(name);
    if (this.#codes.size >= MOST_CODES)
      throw new MailroomError("bad_token_request", "too many links are open: retry in a minute");
    const code = randomBytes(24).toString("base64url");
    this.#codes.set(nameOf(code), { ...holder, until: now + VALID_FOR });
    // Behind `#`, which browsers do not send and servers do not log.
    return { url: `${url()}#code=${code}`, expires: now + VALID_FOR, ...holder };
  }
}

async function askedIn(request: IncomingMessage): Promise<Holder> {
  const asked = Asked.safeParse(await json(request).catch(() => undefined));
  if (!asked.success)
    throw new MailroomError("bad_token_request", "the body must be JSON with 'as': role:id");
  const { as = "admin:local" } = asked.data;
  const colon = as.indexOf(":");
  const role = roleOf(as.slice(0, colon));
  const id = as.slice(colon + 1);
  if ((role !== "user" && role !== "admin") || id === "")
    throw new MailroomError("bad_token_request", `'${as}' is not user:ID or admin:ID`);
  return { role, id };
}

/** Codes are compared by their digest, so that the time a look-up takes tells nothing. */
function nameOf(code: string): string {
  return createHash("sha256").update(code).digest("base64url");
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
