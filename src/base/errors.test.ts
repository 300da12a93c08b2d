import { expect, it } from "vitest";
import {
  describeError,
  hasCode,
  isMailroomError,
  isPublicError,
  isRetryable,
  MailroomError,
} from "./index.js";

it("an error has its code, its details, its cause and the table's retry time", () => {
  const cause = new Error("disk full");
  const error = new MailroomError("mailbox_full", "5 messages wait", { details: { waiting: 5 }, cause });
  expect(error).toMatchObject({
    name: "MailroomError",
    code: "mailbox_full",
    message: "5 messages wait",
    details: { waiting: 5 },
    retryAfter: 5_000,
    cause,
  });
  expect(new MailroomError("mailbox_full", "wait", { retryAfter: 7 }).retryAfter).toBe(7);
  expect(new MailroomError("bad_input", "no").retryAfter).toBeUndefined();
  expect(new MailroomError("bad_input", "no")).not.toHaveProperty("cause");
});

it("an error of another copy of the package is recognized by its brand", () => {
  const foreign = Object.assign(new Error("no"), {
    code: "closed",
    [Symbol.for("agent-mailroom.error")]: true,
  });
  expect(foreign).not.toBeInstanceOf(MailroomError);
  expect(isMailroomError(foreign)).toBe(true);
  expect(hasCode(foreign, "busy", "closed")).toBe(true);
  expect(hasCode(foreign, "busy")).toBe(false);
  expect(isMailroomError(Object.assign(new Error("no"), { code: "closed" }))).toBe(false);
  expect(isMailroomError(undefined)).toBe(false);
  expect(isMailroomError(foreign, "closed")).toBe(true);
  expect(isMailroomError(new MailroomError("closed", "no"), "closed")).toBe(true);
  expect(isMailroomError(new MailroomError("closed", "no"), "unknown_task")).toBe(false);
});

it("only errors of the public part of the table may be shown to callers", () => {
  expect(isPublicError(new MailroomError("unknown_task", "no"))).toBe(true);
  expect(isPublicError(new MailroomError("store_damaged", "/var/data/mailroom.db is damaged"))).toBe(false);
  expect(isPublicError(new MailroomError<"toString">("toString", "no"))).toBe(false);
  expect(isPublicError(new TypeError("no"))).toBe(false);
});

it("unavailable and limited requests can be retried", () => {
  expect(isRetryable(new MailroomError("store_busy", "no"))).toBe(true);
  expect(isRetryable(new MailroomError("too_many_requests", "no"))).toBe(true);
  expect(isRetryable(new MailroomError("wrong_state", "no"))).toBe(false);
  expect(isRetryable({ code: "no_such_code" })).toBe(false);
});

it("a row overrides what its kind says", () => {
  expect(describeError("already_ended")).toMatchObject({ status: 409, jsonRpc: 10001, exit: 1 });
  expect(describeError("idempotency_key_reused")).toMatchObject({ kind: "conflict", status: 422 });
});

it("a code without a row does not compile", () => {
  // @ts-expect-error the table has no such code
  expect(new MailroomError("no_such_code", "no").retryAfter).toBeUndefined();
});
