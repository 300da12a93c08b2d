import { describe, expect, it } from "vitest";
import { failureOf } from "./failures.js";

function limited(responseHeaders: Readonly<Record<string, string>>): Error {
  const error = new Error("slow down");
  error.name = "AI_APICallError";
  return Object.assign(error, { statusCode: 429, isRetryable: true, responseHeaders });
}

describe("the delay that a provider asks for", () => {
  it.each([
    [{ "retry-after-ms": "250" }, 250],
    [{ "retry-after": "2" }, 2_000],
    [{ "retry-after-ms": "86400000" }, 60_000],
    [{ "retry-after": "86400" }, 60_000],
  ])("%j is %s ms", (headers, retryAfter) => {
    expect(failureOf(limited(headers), 0)).toMatchObject({ kind: "transient", retryAfter });
  });

  it.each([{}, { "retry-after-ms": "soon" }, { "retry-after-ms": "-5" }])("%j is ignored", (headers) => {
    expect(failureOf(limited(headers), 0)).not.toHaveProperty("retryAfter");
  });
});

describe("a failed call", () => {
  function callError(message: string, more: object = {}): Error {
    const error = new Error(message);
    error.name = "AI_APICallError";
    return Object.assign(error, { isRetryable: true, ...more });
  }

  it.each([
    callError("Failed to process successful response", { statusCode: 200, isRetryable: false }),
    callError("Cannot connect to API: other side closed"),
  ])("counts if the provider may have worked on it: %s", (error) => {
    expect(failureOf(error, 0)).toHaveProperty("isCharged", true);
  });

  it.each([
    callError("Cannot connect to API: connect ECONNREFUSED 127.0.0.1:1"),
    callError("overloaded", { statusCode: 529 }),
    callError("bad request", { statusCode: 400, isRetryable: false }),
  ])("does not count otherwise: %s", (error) => {
    expect(failureOf(error, 0)).not.toHaveProperty("isCharged");
  });
});
