import { describe, expect, it } from "vitest";
import { readBreakpointResults } from "./breakpoint-results.js";

const read = (given: unknown) => readBreakpointResults(given, "results");

describe("results of breakpoint calls", () => {
  it.each([
    ["plain text for the only call", "yes, take one", { content: "yes, take one" }],
    ["an object", { content: "yes" }, { content: "yes" }],
    ["an object as text", '{"content": "yes"}', { content: "yes" }],
    ["content that is not text", { content: { umbrella: true } }, { content: '{"umbrella":true}' }],
    ["one result by call", { call_id: "a", content: "1" }, [{ callId: "a", content: "1" }]],
    [
      "several as text",
      '[{"call_id":"a","content":"1"},{"call_id":"b","content":2}]',
      [
        { callId: "a", content: "1" },
        { callId: "b", content: "2" },
      ],
    ],
    ["JSON that is no result", '{"umbrella": true}', { content: '{"umbrella": true}' }],
    ["a JSON list that holds no results", "[1, 2]", { content: "[1, 2]" }],
    ["an object that is no result", { umbrella: true }, { content: '{"umbrella":true}' }],
  ])("may be %s", (_what, given, expected) => {
    expect(read(given)).toEqual(expected);
  });

  it.each([
    [[{ content: "1" }], "results.0.call_id"],
    [[{ call_id: "a" }], "results.0.content"],
    [["a"], "results.0"],
    [undefined, "results"],
  ])("%j is refused", (given, field) => {
    expect(() => read(given)).toThrow(expect.objectContaining({ code: "bad_request", details: { field } }));
  });
});
