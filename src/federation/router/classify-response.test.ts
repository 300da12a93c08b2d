import { describe, expect, it } from "vitest";
import { NetError } from "../../net/index.js";
import { type AttemptFacts, classifyFailure, classifyResponse } from "./classify-response.js";

const OURS: AttemptFacts = { direction: "forward", dedupes: true, uncertain: false };
const THEIRS: AttemptFacts = { direction: "forward", dedupes: false, uncertain: false };
const EXISTS = JSON.stringify({
  detail:
    "server failed to receive interswarm forward message: error routing interswarm message: router failed to receive " +
    "interswarm message forward: a task with ID 'e49a0f0e-594f-4fb8-97ba-3cd31378f207' already exists in swarm memory",
});

describe("a response", () => {
  it("with status 200 is a delivery and names the receiving instance", () => {
    const body = JSON.stringify({ status: "success", local_runner: "swarm:alpha@beta" });
    expect(classifyResponse({ status: 200, body }, OURS, 0)).toEqual({
      kind: "delivered",
      note: { localRunner: "swarm:alpha@beta" },
    });
    expect(classifyResponse({ status: 200, body: "?" }, OURS, 0)).toEqual({ kind: "delivered", note: {} });
  });

  it.each([400, 401, 404, 409, 422])(
    "with status %i is a final refusal, with the peer's reason",
    (status) => {
      const body = JSON.stringify({ detail: "because" });
      for (const facts of [OURS, THEIRS]) {
        expect(classifyResponse({ status, body }, facts, 0)).toEqual({
          kind: "refused",
          reason: `it answered ${status}: because`,
        });
      }
    },
  );

  it("with status 429 or 503 is retried after the requested delay, with and without duplicate detection", () => {
    for (const facts of [OURS, THEIRS]) {
      expect(classifyResponse({ status: 503, body: "", retryAfter: "2" }, facts, 0)).toMatchObject({
        kind: "retry",
        answered: true,
        after: 2_000,
      });
    }
  });

  it("with status 500 is retried only with peers that detect duplicates", () => {
    expect(classifyResponse({ status: 500, body: "" }, OURS, 0)).toMatchObject({
      kind: "retry",
      uncertain: true,
    });
    expect(classifyResponse({ status: 500, body: "" }, THEIRS, 0)).toMatchObject({ kind: "refused" });
  });

  it("saying that the task exists means to send a *back*, or that an earlier attempt arrived", () => {
    const answer = { status: 500, body: EXISTS };
    expect(classifyResponse(answer, THEIRS, 0)).toMatchObject({ kind: "send_otherwise" });
    expect(classifyResponse(answer, { ...THEIRS, uncertain: true }, 0)).toMatchObject({ kind: "delivered" });
    expect(classifyResponse(answer, { ...THEIRS, direction: "back" }, 0)).toMatchObject({ kind: "refused" });
    const other = { status: 500, body: "the file already exists; a task with ID 7 failed" };
    expect(classifyResponse(other, THEIRS, 0)).toMatchObject({ kind: "refused" });
  });

  it("[MAIL-G-7] saying that the task is not running means to send a *forward*", () => {
    const answer = { status: 400, body: JSON.stringify({ detail: "task is not running" }) };
    expect(classifyResponse(answer, { ...THEIRS, direction: "back" }, 0)).toMatchObject({
      kind: "send_otherwise",
    });
    expect(classifyResponse(answer, THEIRS, 0)).toMatchObject({ kind: "refused" });
    expect(classifyResponse(answer, { ...OURS, direction: "back" }, 0)).toMatchObject({ kind: "refused" });
  });

  it.each([502, 504])("[MAIL-G-7] of a proxy with status %i is like a lost connection", (status) => {
    const answer = { status, body: "<html>Bad Gateway</html>" };
    expect(classifyResponse(answer, THEIRS, 0)).toMatchObject({ kind: "retry", uncertain: true });
    expect(classifyResponse(answer, { ...THEIRS, direction: "back" }, 0)).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("unknown whether"),
    });
  });

  it("that is long and repetitive is classified in linear time", { timeout: 2_000 }, () => {
    const body = "a task with ID ".repeat(17_000);
    expect(classifyResponse({ status: 500, body }, THEIRS, 0)).toMatchObject({ kind: "refused" });
  });
});

describe("a request without a response", () => {
  const lost = (mayHaveArrived: boolean) =>
    new NetError("unreachable", "gone", { url: "https://b.example", mayHaveArrived });

  it("that was never written is retried, unless it can never succeed", () => {
    expect(classifyFailure(lost(false), THEIRS)).toMatchObject({ kind: "retry" });
    const aborted = new NetError("aborted", "we are stopping", { url: "https://b.example" });
    expect(classifyFailure(aborted, THEIRS)).toMatchObject({ kind: "retry" });
    const blocked = new NetError("blocked_address", "private", { url: "https://b.example" });
    expect(classifyFailure(blocked, OURS)).toMatchObject({ kind: "refused" });
  });

  it("that was written is retried where a duplicate does no harm; otherwise its outcome is unknown", () => {
    expect(classifyFailure(lost(true), { ...OURS, direction: "back" })).toMatchObject({ kind: "retry" });
    expect(classifyFailure(lost(true), THEIRS)).toMatchObject({ kind: "retry", uncertain: true });
    expect(classifyFailure(lost(true), { ...THEIRS, direction: "back" })).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("it is unknown whether the message was delivered"),
    });
  });
});
