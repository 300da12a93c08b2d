import { describe, expect, it } from "vitest";
import { isRecord } from "../base/index.js";
import { MAIL_TOOL_NAMES } from "./tool-table.js";
import {
  createAcknowledgeBroadcastTool,
  createAwaitMessageTool,
  createBroadcastTool,
  createHelpTool,
  createIgnoreBroadcastTool,
  createInterruptTool,
  createInterswarmBroadcastTool,
  createMailTools,
  createRequestTool,
  createResponseTool,
  createSupervisorTools,
  createSwarmDiscoveryTool,
  createTaskCompleteTool,
  mailTool,
  mailToolNamesFor,
  mailToolsFor,
  type ToolSpec,
  toolSpec,
} from "./tools.js";
import { mailAjv } from "./validate.js";

const targets = ["librarian", "binder"];

const names = (specs: readonly ToolSpec[]) =>
  specs.map((spec) => ("function" in spec ? spec.function.name : spec.name));

describe("the tools of an agent", () => {
  const member = { commTargets: targets, canCompleteTasks: false, enableInterswarm: false };
  const basic = [
    "send_request",
    "send_response",
    "acknowledge_broadcast",
    "ignore_broadcast",
    "await_message",
    "help",
  ];
  const supervisor = { ...member, canCompleteTasks: true };

  it("are the basic set with comm targets", () => {
    expect(mailToolNamesFor(member).sort()).toEqual([...basic].sort());
  });

  it("include interrupts, broadcasts and task_complete for a supervisor", () => {
    expect(mailToolNamesFor(supervisor).sort()).toEqual(
      [...basic, "send_interrupt", "send_broadcast", "task_complete"].sort(),
    );
  });

  it("include the interswarm tools with interswarm enabled", () => {
    expect(mailToolNamesFor({ ...supervisor, enableInterswarm: true })).toEqual([...MAIL_TOOL_NAMES]);
    expect(mailToolNamesFor({ ...member, enableInterswarm: true }).sort()).toEqual([...basic].sort());
  });

  it("are only task_complete for a supervisor without comm targets", () => {
    expect(mailToolNamesFor({ ...supervisor, commTargets: [] })).toEqual(["task_complete"]);
    expect(mailToolNamesFor({ ...member, commTargets: [] })).toEqual([]);
  });

  it("include task_complete if and only if the agent can complete tasks", () => {
    expect(mailToolNamesFor({ ...member, supervisor: true })).not.toContain("task_complete");
    expect(mailToolNamesFor({ ...member, supervisor: true })).toContain("send_interrupt");
    expect(mailToolNamesFor({ ...supervisor, supervisor: false })).toContain("task_complete");
    expect(mailToolNamesFor({ ...supervisor, supervisor: false })).not.toContain("send_broadcast");
  });

  it.each(MAIL_TOOL_NAMES)("can exclude %s", (name) => {
    const all = { ...supervisor, enableInterswarm: true };
    expect(mailToolsFor(all).map((tool) => tool.name)).toContain(name);
    expect(mailToolsFor({ ...all, excludeTools: [name] }).map((tool) => tool.name)).toEqual(
      MAIL_TOOL_NAMES.filter((other) => other !== name),
    );
  });
});

describe("tool schemas", () => {
  it.each(MAIL_TOOL_NAMES)("%s has the strict form and compiles", (name) => {
    const { parameters, strict } = mailTool(name, { targets });
    expect(strict).toBe(true);
    const { properties } = parameters;
    if (!isRecord(properties)) throw new Error("no properties");
    expect(parameters).toMatchObject({
      type: "object",
      additionalProperties: false,
      required: Object.keys(properties),
    });
    for (const property of Object.values(properties)) {
      expect(property).toMatchObject({ title: expect.any(String), description: expect.any(String) });
    }
    // Strict mode requires every property, so a call without properties is invalid.
    expect(mailAjv().compile(parameters)({})).toBe(Object.keys(properties).length === 0);
  });

  it("lists the targets if all are local", () => {
    expect(mailTool("send_request", { targets })).toHaveProperty(
      "parameters.properties.target.enum",
      targets,
    );
    const wide = mailTool("send_request", { targets, enableInterswarm: true });
    expect(wide).not.toHaveProperty("parameters.properties.target.enum");
    expect(wide).toHaveProperty(
      "parameters.properties.target.description",
      expect.stringContaining("agent-name@swarm-name"),
    );
    expect(mailTool("send_request")).not.toHaveProperty("parameters.properties.target.enum");
  });

  it("lets optional parameters be null", () => {
    expect(mailTool("await_message")).toHaveProperty("parameters.properties.reason.anyOf", [
      { type: "string" },
      { type: "null" },
    ]);
  });
});

describe("tool specs", () => {
  const action = { name: "ask", description: "Ask", parameters: { type: "object" } };

  it("come in both shapes", () => {
    expect(toolSpec("completions", action)).toEqual({
      type: "function",
      function: { ...action, strict: false },
    });
    expect(toolSpec("responses", action)).toEqual({ type: "function", ...action, strict: false });
  });

  it("are made in sets", () => {
    expect(names(createMailTools({ targets, excludeTools: ["help"] }))).toEqual([
      "send_request",
      "send_response",
      "acknowledge_broadcast",
      "ignore_broadcast",
      "await_message",
    ]);
    expect(names(createSupervisorTools({ targets, style: "completions" }))).toEqual([
      "send_interrupt",
      "send_broadcast",
      "task_complete",
    ]);
    expect(names(createSupervisorTools({ enableInterswarm: true, canCompleteTasks: false }))).toEqual([
      "send_interswarm_broadcast",
      "discover_swarms",
    ]);
  });

  it("are made one by one", () => {
    const specs = [
      createRequestTool(),
      createResponseTool(),
      createInterruptTool(),
      createBroadcastTool(),
      createTaskCompleteTool(),
      createAcknowledgeBroadcastTool(),
      createIgnoreBroadcastTool(),
      createAwaitMessageTool(),
      createHelpTool(),
      createInterswarmBroadcastTool(),
      createSwarmDiscoveryTool({ style: "completions" }),
    ];
    expect(names(specs)).toEqual([...MAIL_TOOL_NAMES]);
    expect(specs.at(-1)).toHaveProperty("function.name", "discover_swarms");
  });
});
