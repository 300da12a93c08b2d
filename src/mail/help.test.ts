import { describe, expect, it } from "vitest";
import { buildHelp } from "./help.js";
import { MAIL_TOOL_NAMES, MAIL_TOOLS } from "./tool-table.js";

const reader = { agent: "librarian", swarm: "books" };
const nothing = { get_summary: false };

function titles(text: string): string[] {
  return text.split("\n").filter((line) => line.startsWith("====="));
}

describe("help", () => {
  it("returns the summary by default", () => {
    expect(titles(buildHelp(reader))).toEqual(["===== SUMMARY ====="]);
  });

  it("returns an agent's addresses", () => {
    const text = buildHelp(reader, { ...nothing, get_identity: true });
    expect(titles(text)).toEqual(["===== YOUR IDENTITY ====="]);
    expect(text).toContain("librarian@books");
  });

  it.each(MAIL_TOOL_NAMES)("explains every parameter of %s", (name) => {
    const text = buildHelp(reader, { ...nothing, get_tool_help: [name] });
    expect(titles(text)).toEqual(["===== TOOL HELP ====="]);
    for (const parameter of Object.keys(MAIL_TOOLS[name].parameters))
      expect(text).toContain(`- ${parameter}`);
  });

  it("reports an unknown tool and explains the others", () => {
    const text = buildHelp(reader, { ...nothing, get_tool_help: ["fly", "constructor", "send_request"] });
    expect(text).toContain("fly: there is no MAIL tool of this name");
    expect(text).toContain("constructor: there is no MAIL tool of this name");
    expect(text).toContain("send_request: Send a request");
  });

  it("returns several sections in order", () => {
    const text = buildHelp(reader, {
      get_summary: true,
      get_identity: true,
      get_tool_help: ["help"],
      get_full_protocol: true,
    });
    expect(titles(text)).toEqual([
      "===== SUMMARY =====",
      "===== YOUR IDENTITY =====",
      "===== TOOL HELP =====",
      "===== THE MAIL PROTOCOL =====",
    ]);
  });

  it("explains the options when nothing was requested", () => {
    expect(buildHelp(reader, nothing)).toContain("You asked for nothing");
  });
});
