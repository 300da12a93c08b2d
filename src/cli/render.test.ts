import pico from "picocolors";
import { describe, expect, it } from "vitest";
import type { TaskEvent } from "../client/index.js";
import { createRenderer } from "./render.js";
import { escapeControlCharacters, wantsColors } from "./terminal.js";

const plain = { colors: pico.createColors(false), columns: 80 };

function event(
  name: string,
  extra: Record<string, unknown>,
  more: Partial<TaskEvent["data"]> = {},
): TaskEvent {
  return { event: name, data: { extra_data: extra, ...more } };
}

function message(id: string, type: string, to: readonly string[], subject: string, body: string): TaskEvent {
  const recipients = to.map((address) => ({ address_type: "agent", address }));
  const sender = { address_type: "agent", address: "supervisor" };
  return event("new_message", {
    full_message: {
      id,
      msg_type: type,
      message: {
        sender,
        subject,
        body,
        ...(type === "request" ? { recipient: recipients[0] } : { recipients }),
      },
    },
  });
}

describe("the renderer", () => {
  it("shows mail to another swarm when it has left, or why it could not", () => {
    const render = createRenderer(plain);
    const args = { target: "librarian@beta", subject: "Book", body: "When?" };
    const call = event("tool_call", { caller: "desk", tool_name: "send_request", tool_args: args });
    const letter = 'desk → librarian@beta  request  "Book"  When?';
    expect(render(call)).toEqual([]);
    expect(render(event("interswarm_message_sent", { swarm: "beta" }))).toEqual([letter]);
    expect(render(event("interswarm_message_sent", { swarm: "beta" }))).toEqual([]);
    render(call);
    const failed = event("interswarm_message_error", { swarm: "beta" }, { description: "it is away" });
    expect(render(failed)).toEqual([letter, "  error it is away"]);
  });

  it("shows who wrote what to whom on one line that fits", () => {
    const lines = createRenderer(plain)(
      message("1", "request", ["weather"], "Forecast", `${"long ".repeat(40)}end`),
    );
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^supervisor → weather {2}request {2}"Forecast" {2}long .*…$/);
    expect(lines[0]?.length).toBeLessThanOrEqual(80);
  });

  it("shows a broadcast once, however many it reaches", () => {
    const render = createRenderer(plain);
    const news = message("7", "broadcast", ["a", "b"], "News", "hello");
    expect([render(news), render(news)].flat()).toEqual(['supervisor → a, b  broadcast  "News"  hello']);
  });

  it("shows an action with the arguments of its call, and its result", () => {
    const render = createRenderer(plain);
    const lines = [
      event("tool_call", {
        caller: "math",
        tool_name: "calculate",
        tool_args: { expression: "1+1" },
        tool_call_id: "c",
      }),
      event("action_call", { caller: "math", tool_name: "calculate", tool_call_id: "c" }),
      event("action_complete", { caller: "math", tool_name: "calculate", tool_call_id: "c", result: "2" }),
      event("action_error", { caller: "math", tool_name: "calculate", tool_call_id: "d", result: "no" }),
    ].flatMap(render);
    expect(lines).toEqual(['  math does calculate(expression: "1+1")', "  math got 2", "  math failed: no"]);
  });

  it.each([
    [
      "task_complete",
      { status: "completed", response: "two\nlines" },
      ["✓ completed", "    two", "    lines"],
    ],
    ["task_complete", { response: "of the reference" }, ["✓ completed", "    of the reference"]],
    ["task_complete", { status: "paused", response: "[]" }, ["paused: the task waits for an answer"]],
    ["task_error", { status: "cancelled", response: "" }, ["✗ cancelled"]],
    ["task_error", { response: "why" }, ["✗ failed", "    why"]],
  ] as const)("shows how a task ended: %s %j", (name, data, lines) => {
    expect(createRenderer(plain)(event(name, {}, data))).toEqual(lines);
  });

  it("says nothing of what people do not care about, unless asked", () => {
    const waiting = event("await_message", {}, { description: "agent 'a' is awaiting" });
    expect(createRenderer(plain)(waiting)).toEqual([]);
    expect(createRenderer({ ...plain, verbose: true })(waiting)).toEqual([
      "  await_message agent 'a' is awaiting",
    ]);
  });

  it("lets no text of an agent's take over the terminal", () => {
    const evil = "\u001b]0;owned\u0007\u001b[31m\r\u202Ered";
    const lines = createRenderer(plain)(message("1", "request", ["a\u001b[2J"], evil, evil));
    for (const char of ["\u001b", "\u0007", "\r", "\u202E"]) expect(lines.join("")).not.toContain(char);
    expect(escapeControlCharacters("a\tb\nc")).toBe("a\tb\nc");
  });
});

describe("colours", () => {
  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: "1" }, true, false],
    [{ NO_COLOR: "" }, true, true],
    [{ TERM: "dumb" }, true, false],
  ])("%j on a terminal: %s → %s", (env, isTerminal, wanted) => {
    expect(wantsColors(env, isTerminal)).toBe(wanted);
  });
});
