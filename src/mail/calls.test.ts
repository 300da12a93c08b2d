import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AgentToolCall,
  assistantEntries,
  callsFromCompletion,
  callsFromResponses,
  normalizeBreakpointCall,
  toolResultEntry,
} from "./calls.js";

const call = { id: "call_6a56", name: "ask_human", args: { question: "umbrella?" } };

describe("history entries", () => {
  it("calls are kept in completions style", () => {
    expect(assistantEntries("completions", { calls: [call] })).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "call_6a56",
            type: "function",
            function: { name: "ask_human", arguments: '{"question":"umbrella?"}' },
          },
        ],
      },
    ]);
    expect(assistantEntries("completions", { text: "Hm.", calls: [] })).toEqual([
      { role: "assistant", content: "Hm." },
    ]);
  });

  it("text and calls are kept in responses style", () => {
    expect(assistantEntries("responses", { text: "Hm.", calls: [call] })).toEqual([
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hm." }] },
      normalizeBreakpointCall(call),
    ]);
  });

  it("results are kept in both styles", () => {
    expect(toolResultEntry("completions", call, "SUCCESS: yes")).toEqual({
      role: "tool",
      name: "ask_human",
      content: "SUCCESS: yes",
      tool_call_id: "call_6a56",
    });
    expect(toolResultEntry("responses", call, "SUCCESS: yes")).toEqual({
      type: "function_call_output",
      call_id: "call_6a56",
      output: "SUCCESS: yes",
    });
  });

  it("stored calls are parsed back unchanged", () => {
    fc.assert(
      fc.property(fc.array(anyCall()), fc.option(fc.string(), { nil: "" }), (calls, text) => {
        expect(assistantEntries("completions", { text, calls }).flatMap(callsFromCompletion)).toEqual(calls);
        expect(callsFromResponses(assistantEntries("responses", { text, calls }))).toEqual(calls);
      }),
    );
  });
});

describe("calls of a model", () => {
  it("may have no arguments, or objects as arguments", () => {
    const item = { type: "function_call", call_id: "c", name: "help" };
    expect(callsFromResponses([item, { ...item, arguments: "" }, { ...item, arguments: { a: 1 } }])).toEqual([
      { id: "c", name: "help", args: {} },
      { id: "c", name: "help", args: {} },
      { id: "c", name: "help", args: { a: 1 } },
    ]);
    expect(callsFromResponses([{ type: "reasoning" }, null])).toEqual([]);
    expect(callsFromCompletion({ role: "assistant", content: "x", tool_calls: null })).toEqual([]);
  });

  it.each<[unknown, string]>([
    [{ tool_calls: [{ id: "c", function: { name: "f", arguments: "{" } }] }, "/tool_calls/0/arguments"],
    [{ tool_calls: [{ id: "c", function: { name: "f", arguments: "[1]" } }] }, "/tool_calls/0/arguments"],
    [{ tool_calls: [{ function: { name: "f", arguments: "{}" } }] }, "no call id"],
    [{ tool_calls: [{ id: "c", function: { arguments: "{}" } }] }, "no name"],
    [{ tool_calls: [7] }, "/tool_calls/0"],
    [{ tool_calls: {} }, "/tool_calls must be a list"],
    [null, "assistant message"],
  ])("are rejected when malformed: %j", (message, reason) => {
    expect(() => callsFromCompletion(message)).toThrow(reason);
    expect(() => callsFromCompletion(message)).toThrow("not a valid");
  });
});

describe("calls at a breakpoint", () => {
  it("have the reference's form", () => {
    expect(JSON.stringify(normalizeBreakpointCall(call))).toBe(
      '{"arguments":"{\\"question\\":\\"umbrella?\\"}","call_id":"call_6a56","name":"ask_human",' +
        '"type":"function_call","id":"fc_call_6a56","status":"completed"}',
    );
  });
});

function anyCall(): fc.Arbitrary<AgentToolCall> {
  return fc.record({
    id: fc.string({ minLength: 1 }),
    name: fc.string({ minLength: 1 }),
    args: fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)), {
      noNullPrototype: true,
    }),
  });
}
