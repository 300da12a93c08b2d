import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkToolArguments } from "./tool-arguments.js";
import { MAIL_TOOL_NAMES, MAIL_TOOLS, type MailToolName } from "./tool-table.js";
import { mailTool } from "./tools.js";
import { mailAjv } from "./validate.js";

const message = { target: "librarian", subject: "", body: "" };

describe("checking tool arguments", () => {
  it.each(MAIL_TOOL_NAMES)("accepts the example of %s", (tool) => {
    expect(checkToolArguments(tool, MAIL_TOOLS[tool].example).ok).toBe(true);
  });

  it.each<[MailToolName, unknown, unknown]>([
    ["send_request", message, message],
    ["send_request", { ...message, target: " librarian " }, message],
    ["send_broadcast", { subject: "s", body: "b" }, { subject: "s", body: "b" }],
    ["send_broadcast", { subject: "s", body: "b", targets: null }, { subject: "s", body: "b" }],
    ["send_broadcast", { subject: "s", body: "b", targets: [] }, { subject: "s", body: "b" }],
    ["await_message", {}, {}],
    ["await_message", { reason: null }, {}],
    ["await_message", { reason: "x" }, { reason: "x" }],
    [
      "help",
      { get_summary: null },
      { get_summary: true, get_identity: false, get_tool_help: [], get_full_protocol: false },
    ],
    [
      "send_interswarm_broadcast",
      { subject: "s", body: "b" },
      { subject: "s", body: "b", target_swarms: [] },
    ],
  ])("%s %j gives %j", (tool, args, value) => {
    expect(checkToolArguments(tool, args)).toEqual({ ok: true, value });
  });

  it.each<[MailToolName, unknown, string]>([
    ["send_request", { subject: "", body: "" }, "target is missing"],
    ["send_request", { ...message, target: null }, "target is missing"],
    ["send_request", { ...message, target: "  " }, "target must not be empty"],
    ["send_request", { ...message, body: 7 }, "body must be a string"],
    ["send_request", { ...message, urgent: true }, 'no parameter "urgent"'],
    ["send_request", JSON.parse('{"__proto__": 1}'), 'no parameter "__proto__"'],
    ["send_request", { toString: 1 }, 'no parameter "toString"'],
    ["task_complete", {}, "finish_message is missing"],
    ["await_message", { reason: 1 }, "reason must be a string"],
    ["help", { get_summary: "yes" }, "get_summary must be true or false"],
    ["help", { get_tool_help: "send_request" }, "get_tool_help must be a list"],
    ["discover_swarms", { discovery_urls: null }, "discovery_urls is missing"],
    ["discover_swarms", { discovery_urls: [] }, "discovery_urls must not be empty"],
    ["send_broadcast", { subject: "", body: "", targets: [1] }, "targets must be a list"],
    ["send_request", null, "must be an object"],
    ["send_request", "{}", "must be an object"],
    ["send_request", [], "must be an object"],
  ])("%s %j is rejected: %s", (tool, args, reason) => {
    const checked = checkToolArguments(tool, args);
    if (checked.ok) throw new Error("accepted");
    expect(checked.message).toContain(reason);
    expect(checked.message).toContain(tool);
  });

  it("accepts nothing that its own schema rejects, with null for absent optional parameters", () => {
    const value = fc.oneof(
      fc.string({ minLength: 1 }),
      fc.constant(null),
      fc.boolean(),
      fc.array(fc.string()),
      fc.integer(),
    );
    for (const tool of MAIL_TOOL_NAMES) {
      // Tools to explain are an enum in the schema; the help text reports an unknown name.
      if (tool === "help") continue;
      const validate = mailAjv().compile(mailTool(tool).parameters);
      const keys = Object.keys(MAIL_TOOLS[tool].parameters);
      const args = fc.dictionary(fc.oneof(fc.constantFrom(...keys), fc.string()), value, {
        noNullPrototype: true,
      });
      fc.assert(
        fc.property(args, (given) => {
          const filled = { ...Object.fromEntries(keys.map((key) => [key, null])), ...given };
          if (checkToolArguments(tool, given).ok) expect(validate(filled)).toBe(true);
        }),
      );
    }
  });
});
