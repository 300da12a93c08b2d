/** Exit codes, documented in docs/cli.md, and the mapping of errors to them. */
import {
  describeError,
  isErrorCode,
  isMailroomError,
  type MailroomError,
  messageOf,
  retryAfterSeconds,
} from "../base/index.js";
import { MailClientError, MailConnectionError, MailStreamError } from "../client/index.js";
import { configProblemsOf } from "../settings/index.js";
import { connectionHint } from "./connection-hint.js";

export const EXIT = {
  ok: 0,
  /** The command failed. */
  failure: 1,
  /** Invalid usage: unknown option, missing argument, invalid value. */
  usage: 2,
  /** No server is reachable, or the connection was lost permanently. */
  unreachable: 3,
  /** The server refused: no token, an invalid one, or one without permission. */
  refused: 4,
  /** The task failed or was cancelled. */
  taskFailed: 5,
  /** The task waits for the answer to a breakpoint. */
  taskPaused: 6,
  /** A server stopped because its store failed permanently. */
  storeFailed: 74,
  /** A server stopped while its store was not writable: results that were not acknowledged are lost. */
  unwritten: 75,
  /** Ended by Ctrl-C. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export interface Explanation {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly exit: ExitCode;
}

/** Returns the message, hint and exit code for any error. */
export function explain(error: unknown): Explanation {
  if (error instanceof MailClientError) return explainRefusal(error);
  if (error instanceof MailConnectionError) {
    const hint = connectionHint(error);
    return { code: error.code, message: error.message, hint, exit: EXIT.unreachable };
  }
  if (error instanceof MailStreamError) {
    // Without any event, the connection failed, not the stream.
    if (error.taskId === undefined && error.cause instanceof MailConnectionError) return explain(error.cause);
    const hint =
      error.taskId === undefined
        ? undefined
        : `continue watching with 'mailroom tasks follow ${error.taskId}'`;
    return { code: error.code, message: error.message, hint, exit: EXIT.unreachable };
  }
  const problems = configProblemsOf(error);
  if (problems !== undefined) {
    // A wrong value on the command line is a usage error; one in a file or a variable is not.
    const isUsage = problems.every(({ place }) => place?.startsWith("--") === true);
    return { code: "bad_config", message: messageOf(error), exit: isUsage ? EXIT.usage : EXIT.failure };
  }
  if (isMailroomError(error) && isErrorCode(error.code)) {
    const { exit, remedy } = describeError(error.code);
    return {
      code: error.code,
      message: error.message,
      hint: hintOf(error) ?? remedy,
      exit: toExitCode(exit),
    };
  }
  const message = messageOf(error);
  const code = codeOf(error);
  const exit = code === "store_failed" ? EXIT.storeFailed : EXIT.failure;
  return { code: code ?? "failure", message, hint: hintFor(code), exit };
}

/** What to do about this very failure; the table has what to do about the code in general. */
function hintOf({ details }: MailroomError<string>): string | undefined {
  return typeof details.hint === "string" ? details.hint : undefined;
}

/** A code of the table of errors, which has plain numbers. */
function toExitCode(exit: number): ExitCode {
  return Object.values(EXIT).find((code) => code === exit) ?? EXIT.failure;
}

/** Statuses that proxies answer with their own pages. */
const OF_PROXIES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

function explainRefusal(error: MailClientError): Explanation {
  const isPage = typeof error.body === "string" && /^\s*<(!doctype|html)/i.test(error.body);
  if (isPage && !OF_PROXIES.has(error.status)) {
    return {
      code: "bad_response",
      message: `this does not look like a MAIL server: it responded with a web page (${error.status})`,
      hint: "check the URL",
      exit: EXIT.unreachable,
    };
  }
  const message = `the server refused (${error.status}): ${isPage ? "the response is a web page" : error.detail}`;
  switch (error.status) {
    case 401:
      return { code: error.code, message, hint: tokenHint(error), exit: EXIT.refused };
    case 403:
      return { code: error.code, message, hint: "use a token of another role", exit: EXIT.refused };
    case 429:
    case 503: {
      const wait = error.retryAfter === undefined ? "" : ` in ${retryAfterSeconds(error.retryAfter)} s`;
      return { code: error.code, message, hint: `retry${wait}`, exit: EXIT.failure };
    }
    default:
      return { code: error.code, message, exit: EXIT.failure };
  }
}

/** On routes of the protocol, a token of the wrong role is also a 401; servers of the reference give no code. */
function tokenHint({ code, detail }: MailClientError): string {
  return code === "invalid_role" || (code === "http_401" && detail === "invalid role")
    ? "this needs a token of another role (admin): create one with 'mailroom token create --role admin --id NAME'"
    : "give a token with --token or MAILROOM_TOKEN; create one with 'mailroom token create'";
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Hints for errors of other modules; most messages already contain one. */
function hintFor(code: string | undefined): string | undefined {
  switch (code) {
    case "EADDRINUSE":
      return "another program uses the port: choose another port with --port";
    case "EACCES":
      return "permission denied: choose another port or directory";
    default:
      return undefined;
  }
}
