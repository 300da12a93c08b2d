import { expect, it } from "vitest";
import { ERRORS, isErrorCode, isMailroomError, MailroomError } from "../../base/index.js";
import { fromMailroomError, MAP_ERRORS, MapError } from "./errors.js";

it("every error of the table has a number of the protocol", () => {
  for (const code of Object.keys(ERRORS).filter(isErrorCode)) {
    const error = fromMailroomError(new MailroomError(code, "why"));
    expect([code, MAP_ERRORS[error.code].code, error.message]).toEqual([code, expect.any(Number), "why"]);
    expect(error.details).toMatchObject({ reason: code });
  }
});

it("errors of the protocol are Mailroom errors, and say when to retry", () => {
  const error = fromMailroomError(new MailroomError("store_busy", "full", { retryAfter: 250 }));
  expect(error).toBeInstanceOf(MapError);
  expect(isMailroomError(error)).toBe(true);
  expect(error.toWire()).toMatchObject({ code: 4000, data: { retryable: true, retryAfterMs: 250 } });
});
