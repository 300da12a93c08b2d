/** Exit codes, documented in docs/cli.md, and how errors become one. */
import { MailClientError, MailConnectionError, MailStreamError } from "../client/index.js";
import { ConfigError } from "../config/index.js";
import { connectionHint } from "./connection-hint.js";

export const EXIT = {
  ok: 0,
  /** It did not work. */
  failure: 1,
  /** The command was not understood: unknown option, missing argument, bad value. */
  usage: 2,
  /** There is no server to talk to, or the connection was lost for good. */
  unreachable: 3,
  /** The server refused: no token, a wrong one, or one without the right. */
  refused: 4,
  /** The task ended, but not well: failed or cancelled. */
  taskFailed: 5,
  /** The task waits for somebody to answer a breakpoint. */
  taskPaused: 6,
  /** A server ended because its store failed for good. */
  storeFailed: 74,
  /** A server was stopped while its store could not be written: results that nobody was told of are lost. */
  unwritten: 75,
  /** Ended by Ctrl-C. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Something to tell the person at the keyboard: what happened, and what to do next. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly code: string;
  readonly exit: ExitCode;
  readonly hint: string | undefined;

  constructor(code: string, message: string, more: { exit?: ExitCode; hint?: string; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.exit = more.exit ?? EXIT.failure;
    this.hint = more.hint;
  }
}

export interface Explanation {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly exit: ExitCode;
}

/** What to say about an error, whoever threw it. */
export function explain(error: unknown): Explanation {
  if (error instanceof CliError) return error;
  if (error instanceof MailClientError) return explainRefusal(error);
  if (error instanceof MailConnectionError) {
    const hint = connectionHint(error);
    return { code: error.code, message: error.message, hint, exit: EXIT.unreachable };
  }
  if (error instanceof MailStreamError) {
    // Nothing ever came: what is wrong is the connection, not the stream.
    if (error.taskId === undefined && error.cause instanceof MailConnectionError) return explain(error.cause);
    const hint =
      error.taskId === undefined ? undefined : `go on watching with 'mailroom tasks follow ${error.taskId}'`;
    return { code: error.code, message: error.message, hint, exit: EXIT.unreachable };
  }
  if (error instanceof ConfigError) {
    // What stands on the command line is the command's own mistake; a file or a variable is something it found.
    const isFlag = error.problems.every(({ place }) => place?.startsWith("--") === true);
    return { code: error.code, message: error.message, exit: isFlag ? EXIT.usage : EXIT.failure };
  }
  const message = error instanceof Error ? error.message : String(error);
  const code = codeOf(error);
  const exit = code === "store_failed" ? EXIT.storeFailed : EXIT.failure;
  return { code: code ?? "failure", message, hint: hintFor(code), exit };
}

/** What proxies answer with pages of their own, in front of any server. */
const OF_PROXIES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

function explainRefusal(error: MailClientError): Explanation {
  const isPage = typeof error.body === "string" && /^\s*<(!doctype|html)/i.test(error.body);
  if (isPage && !OF_PROXIES.has(error.status)) {
    return {
      code: "bad_answer",
      message: `this does not look like a MAIL server: it answered with a web page (${error.status})`,
      hint: "check the URL",
      exit: EXIT.unreachable,
    };
  }
  const message = `the server refused (${error.status}): ${isPage ? "it gave a web page instead of a reason" : error.detail}`;
  switch (error.status) {
    case 401:
      return { code: error.code, message, hint: tokenHint(error), exit: EXIT.refused };
    case 403:
      return { code: error.code, message, hint: "use a token of another role", exit: EXIT.refused };
    case 429:
    case 503: {
      const wait = error.retryAfter === undefined ? "" : ` in ${error.retryAfter} s`;
      return { code: error.code, message, hint: `try again${wait}`, exit: EXIT.failure };
    }
    default:
      return { code: error.code, message, exit: EXIT.failure };
  }
}

/** On routes of the protocol a token of the wrong role is a 401 too; servers of the reference give no code. */
function tokenHint({ code, detail }: MailClientError): string {
  return code === "invalid_role" || (code === "http_401" && detail === "invalid role")
    ? "this needs a token of another role (admin): 'mailroom token create --role admin --id NAME' makes one"
    : "give a token with --token or MAILROOM_TOKEN; 'mailroom token create' makes one";
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** What to do about errors that other rooms throw; most of them say it themselves. */
function hintFor(code: string | undefined): string | undefined {
  switch (code) {
    case "EADDRINUSE":
      return "another program listens there: choose another port with --port";
    case "EACCES":
      return "this user may not do that: choose another port or directory";
    default:
      return undefined;
  }
}
