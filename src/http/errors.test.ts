import { describe, expect, it } from "vitest";
import { RuntimeError } from "../engine/runtime/index.js";
import { StoreBusyError, StoreClosedError, StoreFailedError } from "../journal/ports.js";
import { asHttpError, ERRORS, type ErrorRow, errorAnswer, HttpError } from "./errors.js";

describe("the table of errors", () => {
  it("says for every passing trouble when to try again", () => {
    const rows: [string, ErrorRow][] = Object.entries(ERRORS);
    const silent = rows.filter(
      ([, { status, retryAfter }]) => (status === 503 || status === 429) !== (retryAfter !== undefined),
    );
    expect(silent).toEqual([]);
  });

  it("takes in what the rooms behind the door throw", () => {
    const answer = (error: unknown) => {
      const known = asHttpError(error);
      return known === undefined ? undefined : errorAnswer(known);
    };
    const details = { missing: ["call_1"] };
    expect(answer(new RuntimeError("missing_results", "missing: call_1", { details }))).toMatchObject({
      status: 400,
      body: { detail: "missing: call_1", code: "missing_results", missing: ["call_1"] },
    });
    expect(answer(new StoreBusyError("17 appends"))).toMatchObject({
      status: 503,
      headers: { "retry-after": "1" },
      body: { code: "store_busy" },
    });
    const failure = new StoreFailedError(new Error("/var/data/mailroom.db: disk I/O error"));
    expect(answer(failure)).toMatchObject({ status: 503, body: { code: "store_failed" } });
    expect(answer(new StoreClosedError())).toMatchObject({ status: 503, body: { code: "closed" } });
    expect(JSON.stringify(answer(failure)?.body)).not.toContain("/var/data");
    expect(answer(new TypeError("undefined is not a function"))).toBeUndefined();
    expect(answer("thrown")).toBeUndefined();
  });

  it("lets a refusal bring headers of its own", () => {
    const error = new HttpError("method_not_allowed", "no", { headers: { allow: "GET" } });
    expect(errorAnswer(error)).toMatchObject({ status: 405, headers: { allow: "GET" } });
  });
});
