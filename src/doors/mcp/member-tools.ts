/**
 * The mailbox of one agent as tools, for the process that serves the agent (decision A5, decision B18). The process
 * reads a message and answers with the agent's MAIL tools and actions. Every answer is committed once.
 */
import { randomUUID } from "node:crypto";
import { fromJsonSchema } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { AgentDefinition, LentMessage, OfferedTool, SwarmDefinition } from "../../engine/index.js";
import type { AgentToolCall } from "../../mail/index.js";
import { escapeOwnTags, mailToolsFor, renderMailXml, renderResult } from "../../mail/index.js";
import type { Mailboxes, MessageReference } from "./mailboxes.js";
import { addTool, type ToolAnswer, type ToolHost, within } from "./tool.js";

const MAX_WAIT = 50;

/** Parameters that identify the message to answer. */
const NAMING = {
  message_id: "The message to answer. Default: your open message",
  task_id: "The task of that message, from read_mail: other swarms may use one message id in two tasks",
} as const;

const naming = {
  message_id: z.string().optional().describe(NAMING.message_id),
  task_id: z.string().optional().describe(NAMING.task_id),
};

const Calls = z
  .array(z.strictObject({ name: z.string().min(1), args: z.record(z.string(), z.json()).default({}) }))
  .min(1)
  .describe("Calls of your tools, in order of execution");

export interface MemberParts {
  readonly agent: AgentDefinition;
  readonly swarm: SwarmDefinition;
  readonly mailboxes: Mailboxes;
}

export function addMemberTools(host: ToolHost, parts: MemberParts): void {
  const { agent, mailboxes } = parts;
  const tools = toolsOf(parts);
  const answer = async (
    named: MessageReference,
    calls: readonly Omit<AgentToolCall, "id">[],
  ): Promise<ToolAnswer> => {
    await mailboxes.answer(
      agent.name,
      named,
      calls.map((call) => ({ id: randomUUID(), ...call })),
    );
    return { text: "done; results arrive as mail (read_mail)" };
  };
  addTool(host, {
    name: "read_mail",
    description:
      "Returns your open message, or waits for the next one. Answer it with one of your tools (or several " +
      "at once with answer_mail), acknowledge it, or return it with release_mail.",
    input: z.strictObject({
      wait_seconds: z.number().min(0).max(MAX_WAIT).default(20).describe("Seconds to wait for mail"),
      with_history: z.boolean().default(false).describe("Also return your history of the task"),
    }),
    run: async ({ wait_seconds: wait, with_history }, call) => {
      const lending = await mailboxes.read(agent.name, within(wait, call));
      return lending === undefined
        ? { text: "no mail", data: { message: null } }
        : renderLentMessage(lending, with_history);
    },
  });
  for (const tool of tools) {
    addTool(host, {
      name: tool.name,
      description: `${tool.description} Answers your open message.`,
      input: fromJsonSchema<Record<string, unknown>>(withNaming(tool)),
      run: (input) => {
        const { named, args } = withoutNaming(tool, withoutNulls(input));
        return answer(named, [{ name: tool.name, args }]);
      },
    });
  }
  addTool(host, {
    name: "answer_mail",
    description: "Answers your open message with several calls, which take effect together.",
    input: z.strictObject({ ...naming, calls: Calls }),
    run: ({ calls, ...named }) => answer(named, calls),
  });
  addTool(host, {
    name: "acknowledge_mail",
    description: "Acknowledges your open message without an answer.",
    input: z.strictObject({ ...naming, note: z.string().optional() }),
    run: async ({ note, ...named }) => {
      const held = await mailboxes.current(agent.name);
      const isBroadcast = held?.message.msg_type === "broadcast";
      const name = isBroadcast ? "acknowledge_broadcast" : "await_message";
      return answer(named, [
        { name, args: note === undefined ? {} : { [isBroadcast ? "note" : "reason"]: note } },
      ]);
    },
  });
  addTool(host, {
    name: "release_mail",
    description: "Returns your open message unanswered; it is delivered again.",
    input: z.strictObject(naming),
    run: async (named) => {
      await mailboxes.release(agent.name, named);
      return { text: "released" };
    },
  });
}

/** The agent's MAIL tools, by its permissions, and its actions. */
function toolsOf({ agent, swarm }: MemberParts): OfferedTool[] {
  return [
    ...mailToolsFor({
      commTargets: agent.commTargets,
      canCompleteTasks: agent.canCompleteTasks,
      enableInterswarm: swarm.enableInterswarm && agent.enableInterswarm,
      excludeTools: [...swarm.excludeTools, ...agent.excludeTools],
    }),
    ...swarm.actions.filter(({ name }) => agent.actions.includes(name)),
  ];
}

function propertiesOf({ parameters: { properties } }: OfferedTool): object {
  return typeof properties === "object" && properties !== null ? properties : {};
}

/** A tool's own parameter of this name takes precedence; callers then identify the message through answer_mail. */
function withNaming(tool: OfferedTool): Record<string, unknown> {
  const { parameters } = tool;
  const properties = propertiesOf(tool);
  const naming = Object.entries(NAMING).map(([name, description]) => [name, { type: "string", description }]);
  return {
    ...parameters,
    type: "object",
    properties: { ...Object.fromEntries(naming), ...properties },
    // Strict mode is for providers; here optional parameters may be omitted.
    required: Array.isArray(parameters.required)
      ? parameters.required.filter((key) => !canBeNull(properties, key))
      : [],
  };
}

function withoutNaming(tool: OfferedTool, input: Readonly<Record<string, unknown>>) {
  const own = propertiesOf(tool);
  const named: Record<string, string> = {};
  const args: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(input)) {
    if (key in NAMING && !(key in own) && typeof value === "string") named[key] = value;
    else args[key] = value;
  }
  return { named, args };
}

function canBeNull(properties: object, key: unknown): boolean {
  const schema: unknown = Reflect.get(properties, String(key));
  return JSON.stringify(schema ?? null).includes('{"type":"null"}');
}

function withoutNulls(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
}

function renderLentMessage(
  { message, attempt, task, history, tools }: LentMessage,
  withHistory: boolean,
): ToolAnswer {
  const results = lastResults(history);
  const told = results.map((result) => `${result.name}: ${renderResult(result)}`);
  return {
    text: [
      renderMailXml(message).trim(),
      ...(told.length === 0 ? [] : ["Results of your last calls in this task:", ...told]),
      `You can use: ${tools.map(({ name }) => name).join(", ")}.`,
      ...(withHistory ? [`Your history of the task: ${escapeOwnTags(JSON.stringify(history))}`] : []),
    ].join("\n\n"),
    data: {
      message,
      message_id: message.id,
      attempt,
      task_id: task.id,
      results,
      tools: tools.map(({ name }) => name),
      ...(withHistory && { history }),
    },
  };
}

function lastResults(history: LentMessage["history"]) {
  const answered = history.findLastIndex(({ kind }) => kind === "answer");
  return history.slice(answered + 1).flatMap((item) => (item.kind === "result" ? [item] : []));
}
