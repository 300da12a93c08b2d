import { describe, expect, it } from "vitest";
import { NetError } from "../../net/index.js";
import { type AttemptFacts, judgeAnswer, judgeFailure } from "./verdict.js";

const OURS: AttemptFacts = { direction: "forward", dedupes: true, uncertain: false };
const THEIRS: AttemptFacts = { direction: "forward", dedupes: false, uncertain: false };
const EXISTS = JSON.stringify({
  detail:
    "server failed to receive interswarm forward message: error routing interswarm message: router failed to receive " +
    "interswarm message forward: a task with ID 'e49a0f0e-594f-4fb8-97ba-3cd31378f207' already exists in swarm memory",
});

describe("an answer", () => {
  it("of 200 is a delivery and names the instance that got it", () => {
    const body = JSON.stringify({ status: "success", local_runner: "swarm:alpha@beta" });
    expect(judgeAnswer({ status: 200, body }, OURS, 0)).toEqual({
      kind: "delivered",
      note: { localRunner: "swarm:alpha@beta" },
    });
    expect(judgeAnswer({ status: 200, body: "?" }, OURS, 0)).toEqual({ kind: "delivered", note: {} });
  });

  it.each([400, 401, 404, 409, 422])("of %i is the last word, in the other side's own words", (status) => {
    const body = JSON.stringify({ detail: "because" });
    for (const facts of [OURS, THEIRS]) {
      expect(judgeAnswer({ status, body }, facts, 0)).toEqual({
        kind: "refused",
        reason: `it answered ${status}: because`,
      });
    }
  });

  it("of 429 or 503 asks for patience, which both kinds of peers get", () => {
    for (const facts of [OURS, THEIRS]) {
      expect(judgeAnswer({ status: 503, body: "", retryAfter: "2" }, facts, 0)).toMatchObject({
        kind: "retry",
        answered: true,
        after: 2_000,
      });
    }
  });

  it("of 500 is tried again with peers that recognise ids, and never with others", () => {
    expect(judgeAnswer({ status: 500, body: "" }, OURS, 0)).toMatchObject({ kind: "retry", uncertain: true });
    expect(judgeAnswer({ status: 500, body: "" }, THEIRS, 0)).toMatchObject({ kind: "refused" });
  });

  it("that the task exists means `send it back`, or that an earlier attempt got through", () => {
    const answer = { status: 500, body: EXISTS };
    expect(judgeAnswer(answer, THEIRS, 0)).toEqual({ kind: "send_back" });
    expect(judgeAnswer(answer, { ...THEIRS, uncertain: true }, 0)).toMatchObject({ kind: "delivered" });
    expect(judgeAnswer(answer, { ...THEIRS, direction: "back" }, 0)).toMatchObject({ kind: "refused" });
    const other = { status: 500, body: "the file already exists; a task with ID 7 failed" };
    expect(judgeAnswer(other, THEIRS, 0)).toMatchObject({ kind: "refused" });
  });

  it("that is long and repeats itself is judged at once", { timeout: 2_000 }, () => {
    const body = "a task with ID ".repeat(17_000);
    expect(judgeAnswer({ status: 500, body }, THEIRS, 0)).toMatchObject({ kind: "refused" });
  });
});

describe("no answer", () => {
  const lost = (sent: boolean) => new NetError("unreachable", "gone", { url: "https://b.example", sent });

  it("to a request that was never written is tried again, unless it never could succeed", () => {
    expect(judgeFailure(lost(false), THEIRS)).toMatchObject({ kind: "retry" });
    const aborted = new NetError("aborted", "we are stopping", { url: "https://b.example" });
    expect(judgeFailure(aborted, THEIRS)).toMatchObject({ kind: "retry" });
    const blocked = new NetError("blocked_address", "private", { url: "https://b.example" });
    expect(judgeFailure(blocked, OURS)).toMatchObject({ kind: "refused" });
  });

  it("to one that was written is tried again where that does no harm, else nobody knows", () => {
    expect(judgeFailure(lost(true), { ...OURS, direction: "back" })).toMatchObject({ kind: "retry" });
    expect(judgeFailure(lost(true), THEIRS)).toMatchObject({ kind: "retry", uncertain: true });
    expect(judgeFailure(lost(true), { ...THEIRS, direction: "back" })).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("nobody knows whether it was delivered"),
    });
  });
});
