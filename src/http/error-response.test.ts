import { describe, expect, it } from "vitest";
import { MailroomError, type PublicErrorCode } from "../base/index.js";
import { storeBusy, storeClosed, storeFailed } from "../journal/ports.js";
import { errorResponse, toPublicError } from "./error-response.js";

describe("error responses", () => {
  it("errors of other modules become their documented responses", () => {
    const answer = (error: unknown) => {
      const known = toPublicError(error);
      return known === undefined ? undefined : errorResponse(known);
    };
    const details = { missing: ["call_1"] };
    expect(answer(new MailroomError("missing_results", "missing: call_1", { details }))).toMatchObject({
      status: 400,
      body: { detail: "missing: call_1", code: "missing_results", missing: ["call_1"] },
    });
    expect(answer(storeBusy("17 appends"))).toMatchObject({
      status: 503,
      headers: { "retry-after": "1" },
      body: { code: "store_busy" },
    });
    const failure = storeFailed(new Error("/var/data/mailroom.db: disk I/O error"));
    expect(answer(failure)).toMatchObject({ status: 503, body: { code: "store_failed" } });
    expect(answer(storeClosed())).toMatchObject({ status: 503, body: { code: "closed" } });
    expect(JSON.stringify(answer(failure)?.body)).not.toContain("/var/data");
    expect(answer(new TypeError("undefined is not a function"))).toBeUndefined();
    expect(answer("thrown")).toBeUndefined();
  });

  it("the retry time of an error becomes Retry-After in seconds", () => {
    const error = new MailroomError<PublicErrorCode>("too_many_requests", "no", { retryAfter: 1_500 });
    expect(errorResponse(error)).toMatchObject({ status: 429, headers: { "retry-after": "2" } });
  });

  it("a caller without valid credentials learns how to authenticate", () => {
    const error = new MailroomError<PublicErrorCode>("unauthenticated", "no");
    expect(errorResponse(error)).toMatchObject({ status: 401, headers: { "www-authenticate": "Bearer" } });
  });
});
