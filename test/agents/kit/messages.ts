/** Anthropic Messages. */
import { pieces } from "./chat.js";
import {
  argumentsOf,
  callId,
  type Format,
  frame,
  list,
  type Reply,
  record,
  type Said,
  words,
} from "./wire.js";

export const messages: Format = {
  path: /\/messages$/,
  read(body) {
    const given = list(body.messages);
    if (given[0]?.role !== "user") throw new Error('messages: first message must use the "user" role');
    const said: Said[] = [];
    for (const [index, message] of given.entries()) {
      if (given[index - 1]?.role === message.role) throw new Error("messages: roles must alternate");
      const content = typeof message.content === "string" ? [] : list(message.content);
      const results = content
        .filter(({ type }) => type === "tool_result")
        .map((part) => ({ id: String(part.tool_use_id), content: words(part.content) }));
      const texts = content.filter(({ type }) => type === "text");
      if (texts.some(({ text }) => text === ""))
        throw new Error("messages: text content blocks must be non-empty");
      const text = typeof message.content === "string" ? message.content : words(texts);
      if (results.length > 0) {
        said.push({ role: "tool", text: "", calls: [], results, reasoning: [] });
        if (text !== "") said.push({ role: "user", text, calls: [], results: [], reasoning: [] });
        continue;
      }
      const calls = content
        .filter(({ type }) => type === "tool_use")
        .map(({ id, name, input }) => ({ id: String(id), name: String(name), args: input }));
      if (calls.some(({ id }) => !/^[a-zA-Z0-9_-]+$/.test(id))) throw new Error("messages: bad tool_use id");
      const reasoning = content
        .filter(({ type }) => type === "thinking")
        .map((part) => String(part.signature));
      said.push({
        role: message.role === "assistant" ? "assistant" : "user",
        text,
        calls,
        results: [],
        reasoning,
      });
    }
    const thinks = record(body.thinking).type === "enabled";
    const choice = record(body.tool_choice);
    if (thinks && choice.type !== undefined && choice.type !== "auto") {
      throw new Error("Thinking may not be enabled when tool_choice forces tool use.");
    }
    const last = said.findLast(({ role }) => role === "assistant");
    if (thinks && (last?.calls.length ?? 0) > 0 && last?.reasoning.length === 0) {
      throw new Error("Expected `thinking`, but found `tool_use`.");
    }
    return {
      system: words(body.system),
      said,
      tools: list(body.tools).map(({ name }) => String(name)),
      toolChoice:
        choice.type === "any"
          ? "required"
          : choice.type === "tool"
            ? String(choice.name)
            : typeof choice.type === "string"
              ? choice.type
              : undefined,
      stream: body.stream === true,
      body,
    };
  },
  whole(reply, id) {
    return {
      ...head(reply, id),
      content: blocks(reply, id).map(({ json: _json, ...block }) => block),
      stop_reason: stop(reply),
    };
  },
  frames(reply, id) {
    const event = (type: string, data: object) => frame({ type, ...data }, type);
    return [
      event("message_start", { message: { ...head(reply, id), content: [], stop_reason: null } }),
      ...blocks(reply, id).flatMap((block, index) => [
        event("content_block_start", { index, content_block: empty(block) }),
        ...deltas(block).map((delta) => event("content_block_delta", { index, delta })),
        event("content_block_stop", { index }),
      ]),
      event("message_delta", {
        delta: { stop_reason: stop(reply), stop_sequence: null },
        usage: { output_tokens: reply.usage?.output ?? 50 },
      }),
      event("message_stop", {}),
    ];
  },
  error: (status, message) => ({
    type: "error",
    error: { type: status === 529 ? "overloaded_error" : "invalid_request_error", message },
  }),
};

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  /** The input as text, for streams. */
  readonly json?: string;
}

function blocks(reply: Reply, id: string): Block[] {
  const text = reply.refusal ?? reply.text;
  return [
    ...(reply.reasoning === undefined
      ? []
      : [{ type: "thinking", thinking: reply.reasoning, signature: `signed:${reply.reasoning}` }]),
    ...(text === undefined ? [] : [{ type: "text", text }]),
    ...(reply.calls ?? []).map((call, index) => ({
      type: "tool_use",
      id: callId(id, call, index),
      name: call.name,
      input: call.args ?? {},
      json: argumentsOf(call),
    })),
  ];
}

function empty({ json: _json, ...block }: Block): Block {
  if (block.type === "tool_use") return { ...block, input: {} };
  return block.type === "text" ? { ...block, text: "" } : { ...block, thinking: "", signature: "" };
}

function deltas(block: Block): object[] {
  if (block.type === "tool_use") {
    return pieces(block.json ?? "").map((partial_json) => ({ type: "input_json_delta", partial_json }));
  }
  if (block.type === "text") return pieces(block.text ?? "").map((text) => ({ type: "text_delta", text }));
  return [
    { type: "thinking_delta", thinking: block.thinking },
    { type: "signature_delta", signature: block.signature },
  ];
}

function head(reply: Reply, id: string) {
  const { input, output, cached = 0 } = reply.usage ?? { input: 1_500, output: 50 };
  return {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model: "test",
    stop_sequence: null,
    usage: {
      input_tokens: input - cached,
      output_tokens: output,
      cache_read_input_tokens: cached,
      cache_creation_input_tokens: 0,
    },
  };
}

function stop(reply: Reply): string {
  if (reply.finish === "length") return "max_tokens";
  if (reply.refusal !== undefined || reply.finish === "content_filter") return "refusal";
  return reply.calls === undefined ? "end_turn" : "tool_use";
}
