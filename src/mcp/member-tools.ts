/**
 * The mailbox of one agent as tools: for a process that *is* the agent (decisions A5, B18). It reads a message, does
 * what it likes, and answers with the MAIL tools and actions that the agent has. Every answer is committed once.
 */
import { randomUUID } from "node:crypto";
import { fromJsonSchema, type McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { OfferedTool } from "../engine/agent.js";
import type { AgentDefinition, SwarmDefinition } from "../engine/definition.js";
import type { Lending } from "../engine/runtime/index.js";
import type { AgentToolCall } from "../mail/calls.js";
import { renderMailXml } from "../mail/render.js";
import { mailToolsFor } from "../mail/tools.js";
import type { Mailboxes } from "./mailboxes.js";
import { addTool, type ToolAnswer, within } from "./tool.js";

const LONGEST_WAIT = 50;

const message_id = z
  .string()
  .optional()
  .describe("Which message this is about; the one in your hands if left out");

const Calls = z
  .array(z.strictObject({ name: z.string().min(1), args: z.record(z.string(), z.json()).default({}) }))
  .min(1)
  .describe("Calls of your tools, in the order in which they are to be carried out");

export interface MemberParts {
  readonly agent: AgentDefinition;
  readonly swarm: SwarmDefinition;
  readonly mailboxes: Mailboxes;
}

export function addMemberTools(server: McpServer, parts: MemberParts): void {
  const { agent, mailboxes } = parts;
  const tools = toolsOf(parts);
  const answer = async (
    id: string | undefined,
    calls: readonly Omit<AgentToolCall, "id">[],
  ): Promise<ToolAnswer> => {
    await mailboxes.answer(
      agent.name,
      id,
      calls.map((call) => ({ id: randomUUID(), ...call })),
    );
    return { text: "done; what comes of it is in your mail (read_mail)" };
  };
  addTool(server, {
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
    addTool(server, {
      name: tool.name,
      description: `${tool.description} Answers the message in your hands.`,
      input: fromJsonSchema<Record<string, unknown>>(withMessageId(tool)),
      run: ({ message_id: id, ...args }) =>
        answer(typeof id === "string" ? id : undefined, [{ name: tool.name, args: withoutNulls(args) }]),
    });
  }
  addTool(server, {
    name: "answer_mail",
    description: "Answers the message in your hands with several calls at once; they take effect together.",
    input: z.strictObject({ message_id, calls: Calls }),
    run: ({ message_id: id, calls }) => answer(id, calls),
  });
  addTool(server, {
    name: "acknowledge_mail",
    description: "Says that you have read the message in your hands and that there is nothing to answer.",
    input: z.strictObject({ message_id, note: z.string().optional() }),
    run: async ({ message_id: id, note }) => {
      const held = await mailboxes.current(agent.name);
      const isBroadcast = held?.message.msg_type === "broadcast";
      const name = isBroadcast ? "acknowledge_broadcast" : "await_message";
      return answer(id, [
        { name, args: note === undefined ? {} : { [isBroadcast ? "note" : "reason"]: note } },
      ]);
    },
  });
  addTool(server, {
    name: "release_mail",
    description: "Gives the message in your hands back unanswered; it will be handed out again.",
    input: z.strictObject({ message_id }),
    run: async ({ message_id: id }) => {
      await mailboxes.release(agent.name, id);
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

function withMessageId({ parameters }: OfferedTool): Record<string, unknown> {
  const properties = typeof parameters.properties === "object" ? parameters.properties : {};
  return {
    ...parameters,
    type: "object",
    properties: {
      ...properties,
      message_id: {
        type: "string",
        description: "Which message this answers; the one in your hands if left out",
      },
    },
    // Strict mode is for providers; here what is optional may be left out.
    required: Array.isArray(parameters.required)
      ? parameters.required.filter((key) => !mayBeNull(properties, key))
      : [],
  };
}

function mayBeNull(properties: object | null, key: unknown): boolean {
  const schema: unknown = properties === null ? undefined : Reflect.get(properties, String(key));
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
