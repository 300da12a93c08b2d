/**
 * The mailbox of one agent as tools: for a process that *is* the agent (decisions A5, B18). It reads a message, does
 * what it likes, and answers with the MAIL tools and actions that the agent has. Every answer is committed once.
 */
import { randomUUID } from "node:crypto";
import { fromJsonSchema } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { OfferedTool } from "../engine/agent.js";
import type { AgentDefinition, SwarmDefinition } from "../engine/definition.js";
import type { Lending } from "../engine/runtime/index.js";
import type { AgentToolCall } from "../mail/calls.js";
import { renderMailXml } from "../mail/render.js";
import { mailToolsFor } from "../mail/tools.js";
import type { Mailboxes, NamedMail } from "./mailboxes.js";
import { addTool, type ToolAnswer, type ToolHost, within } from "./tool.js";

const LONGEST_WAIT = 50;

/** How a tool is told which message it is about. */
const NAMING = {
  message_id: "Which message this is about; the one in your hands if left out",
  task_id: "The task of that message, as read_mail says it: other swarms may use one message id in two tasks",
} as const;

const naming = {
  message_id: z.string().optional().describe(NAMING.message_id),
  task_id: z.string().optional().describe(NAMING.task_id),
};

const Calls = z
  .array(z.strictObject({ name: z.string().min(1), args: z.record(z.string(), z.json()).default({}) }))
  .min(1)
  .describe("Calls of your tools, in the order in which they are to be carried out");

export interface MemberParts {
  readonly agent: AgentDefinition;
  readonly swarm: SwarmDefinition;
  readonly mailboxes: Mailboxes;
}

export function addMemberTools(host: ToolHost, parts: MemberParts): void {
  const { agent, mailboxes } = parts;
  const tools = toolsOf(parts);
  const answer = async (
    named: NamedMail,
    calls: readonly Omit<AgentToolCall, "id">[],
  ): Promise<ToolAnswer> => {
    await mailboxes.answer(
      agent.name,
      named,
      calls.map((call) => ({ id: randomUUID(), ...call })),
    );
    return { text: "done; what comes of it is in your mail (read_mail)" };
  };
  addTool(host, {
    name: "read_mail",
    description:
      "Shows the message that you have in hand, or waits for the next one. Answer it with one of your tools (or several " +
      "at once with answer_mail), acknowledge it, or give it back with release_mail.",
    input: z.strictObject({
      wait_seconds: z.number().min(0).max(LONGEST_WAIT).default(20).describe("How long to wait for mail"),
      with_history: z.boolean().default(false).describe("Also show what you remember of the task"),
    }),
    run: async ({ wait_seconds: wait, with_history }, call) => {
      const lending = await mailboxes.read(agent.name, within(wait, call));
      return lending === undefined
        ? { text: "no mail", data: { message: null } }
        : shown(lending, with_history);
    },
  });
  for (const tool of tools) {
    addTool(host, {
      name: tool.name,
      description: `${tool.description} Answers the message in your hands.`,
      input: fromJsonSchema<Record<string, unknown>>(withNaming(tool)),
      run: (input) => {
        const { named, args } = withoutNaming(tool, withoutNulls(input));
        return answer(named, [{ name: tool.name, args }]);
      },
    });
  }
  addTool(host, {
    name: "answer_mail",
    description: "Answers the message in your hands with several calls at once; they take effect together.",
    input: z.strictObject({ ...naming, calls: Calls }),
    run: ({ calls, ...named }) => answer(named, calls),
  });
  addTool(host, {
    name: "acknowledge_mail",
    description: "Says that you have read the message in your hands and that there is nothing to answer.",
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
    description: "Gives the message in your hands back unanswered; it will be handed out again.",
    input: z.strictObject(naming),
    run: async (named) => {
      await mailboxes.release(agent.name, named);
      return { text: "released" };
    },
  });
}

/** The MAIL tools that follow from the agent's rights, and its actions. */
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

/** A parameter of the tool's own by such a name stays the tool's; its callers name their mail in answer_mail. */
function withNaming(tool: OfferedTool): Record<string, unknown> {
  const { parameters } = tool;
  const properties = propertiesOf(tool);
  const naming = Object.entries(NAMING).map(([name, description]) => [name, { type: "string", description }]);
  return {
    ...parameters,
    type: "object",
    properties: { ...Object.fromEntries(naming), ...properties },
    // Strict mode is for providers; here what is optional may be left out.
    required: Array.isArray(parameters.required)
      ? parameters.required.filter((key) => !mayBeNull(properties, key))
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

function mayBeNull(properties: object, key: unknown): boolean {
  const schema: unknown = Reflect.get(properties, String(key));
  return JSON.stringify(schema ?? null).includes('{"type":"null"}');
}

function withoutNulls(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
}

function shown({ message, attempt, task, history, tools }: Lending, withHistory: boolean): ToolAnswer {
  const results = lastResults(history);
  const told = results.map(({ name, ok, content }) => `${name}: ${ok ? "SUCCESS" : "ERROR"}: ${content}`);
  return {
    text: [
      renderMailXml(message).trim(),
      ...(told.length === 0 ? [] : ["What came of your last calls in this task:", ...told]),
      `You can use: ${tools.map(({ name }) => name).join(", ")}.`,
      ...(withHistory ? [`What you remember of the task: ${JSON.stringify(history)}`] : []),
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

function lastResults(history: Lending["history"]) {
  const answered = history.findLastIndex(({ kind }) => kind === "answer");
  return history.slice(answered + 1).flatMap((item) => (item.kind === "result" ? [item] : []));
}
