/**
 * Rules of the providers' APIs about requests, as data. Each has its source and a request that breaks it, so that a test
 * can show that the rule refuses something before it is relied on.
 */
import { createHash } from "node:crypto";
import { type Json, list, record, words } from "./wire.js";

/** What a provider remembers of its answers. */
export interface Issued {
  /** Signatures of reasoning, with the hash of the prompt before it. */
  readonly signatures: Map<string, string>;
}

export interface Rule {
  readonly id: string;
  /** The provider's documentation, or the message of its API. */
  readonly source: string;
  /** The provider's complaint, or undefined. */
  check(body: Json, issued: Issued): string | undefined;
  /** A request that breaks the rule. */
  readonly violation: Json;
}

export type WireName = "chat" | "deepseek" | "responses" | "anthropic" | "gemini";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const user = { role: "user", content: "hi" };

// --- OpenAI Chat Completions ------------------------------------------------------------------------------------------

const toolCall = (id: string, args = "{}") => ({
  id,
  type: "function",
  function: { name: "look", arguments: args },
});
const called = (...ids: string[]) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => toolCall(id)),
});
const answered = (id: string) => ({ role: "tool", tool_call_id: id, content: "x" });

function openCalls(messages: readonly Json[]): string | undefined {
  let open = new Set<string>();
  for (const [at, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!open.delete(String(message.tool_call_id))) return `messages[${at}]: a result without its call`;
      continue;
    }
    if (open.size > 0) return `messages[${at}]: calls ${[...open].join()} have no result`;
    open = new Set(list(message.tool_calls).map(({ id }) => String(id)));
  }
  return open.size === 0 ? undefined : `calls ${[...open].join()} have no result at the end`;
}

const CHAT: readonly Rule[] = [
  {
    id: "CHAT-1",
    source:
      "OpenAI API: an assistant message with 'tool_calls' must be followed by tool messages responding to each id",
    check: ({ messages }) => openCalls(list(messages)),
    violation: { messages: [user, called("a", "b"), answered("a"), user] },
  },
  {
    id: "CHAT-2",
    source:
      "OpenAI API: messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    check: ({ messages }) => openCalls(list(messages)),
    violation: { messages: [user, answered("a")] },
  },
  {
    id: "CHAT-3",
    source: "OpenAI API reference, assistant message: content is required unless tool_calls is given",
    check: ({ messages }) =>
      list(messages).some(
        (m) => m.role === "assistant" && words(m.content) === "" && list(m.tool_calls).length === 0,
      )
        ? "an assistant message is empty"
        : undefined,
    violation: { messages: [user, { role: "assistant", content: "" }] },
  },
  {
    id: "CHAT-4",
    source: "OpenAI guide, function calling: results are matched by tool_call_id, so ids are unique",
    check: ({ messages }) =>
      repeated(list(messages).flatMap((m) => list(m.tool_calls).map(({ id }) => String(id)))),
    violation: { messages: [user, called("a"), answered("a"), called("a"), answered("a")] },
  },
  {
    id: "CHAT-5",
    source:
      "OpenAI API reference, function name: a-z, A-Z, 0-9, underscores and dashes, at most 64 characters",
    check: ({ messages }) =>
      list(messages)
        .flatMap((m) => list(m.tool_calls))
        .map((call) => String(record(call.function).name))
        .find((name) => !NAME.test(name)),
    violation: {
      messages: [
        user,
        { role: "assistant", tool_calls: [{ id: "a", function: { name: "a b" } }] },
        answered("a"),
      ],
    },
  },
  {
    id: "CHAT-6",
    source: "OpenAI API reference, function arguments: a JSON string of an object",
    check: ({ messages }) =>
      list(messages)
        .flatMap((m) => list(m.tool_calls))
        .map((call) => String(record(call.function).arguments))
        .find((text) => !isJsonObject(text)),
    violation: { messages: [user, { role: "assistant", tool_calls: [toolCall("a", "{")] }, answered("a")] },
  },
  {
    id: "CHAT-7",
    source:
      "OpenAI guide, structured outputs: strict needs additionalProperties false and all fields required",
    check: ({ tools }) => strictSchemas(list(tools).map(({ function: tool }) => record(tool))),
    violation: {
      messages: [user],
      tools: [
        { function: { name: "a", strict: true, parameters: { type: "object", properties: { x: {} } } } },
      ],
    },
  },
];

const DEEPSEEK: readonly Rule[] = [
  ...CHAT.slice(0, 6),
  {
    id: "DEEPSEEK-1",
    source: "DeepSeek guide, thinking mode: reasoning_content of answers with tool calls must be passed back",
    check: ({ messages }) =>
      list(messages).some((m) => list(m.tool_calls).length > 0 && typeof m.reasoning_content !== "string")
        ? "the reasoning_content in the thinking mode must be passed back"
        : undefined,
    violation: { messages: [user, called("a"), answered("a")] },
  },
];

// --- OpenAI Responses -----------------------------------------------------------------------------------------------

const functionCall = (call_id: string) => ({ type: "function_call", call_id, name: "look", arguments: "{}" });
const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "x" });
const sealed = (encrypted_content: string) => ({
  type: "reasoning",
  id: "rs",
  encrypted_content,
  summary: [],
});

const RESPONSES: readonly Rule[] = [
  {
    id: "RESPONSES-1",
    source: "OpenAI API: no tool output found for function call",
    check: ({ input }) => {
      const outputs = new Set(
        list(input).flatMap((i) => (i.type === "function_call_output" ? [i.call_id] : [])),
      );
      return list(input).some((i) => i.type === "function_call" && !outputs.has(i.call_id))
        ? "no tool output found for a function call"
        : undefined;
    },
    violation: { input: [user, functionCall("a")] },
  },
  {
    id: "RESPONSES-2",
    source: "OpenAI API: no tool call found for function call output",
    check: ({ input }) => {
      const seen = new Set<unknown>();
      for (const item of list(input)) {
        if (item.type === "function_call") seen.add(item.call_id);
        if (item.type === "function_call_output" && !seen.has(item.call_id))
          return "an output without its call";
      }
      return undefined;
    },
    violation: { input: [user, output("a"), functionCall("a")] },
  },
  {
    id: "RESPONSES-3",
    source:
      "OpenAI guide, reasoning: with store false, reasoning items are passed with their encrypted_content",
    check: ({ input, store }) =>
      store === false &&
      list(input).some((i) => i.type === "reasoning" && typeof i.encrypted_content !== "string")
        ? "a reasoning item has no encrypted_content"
        : undefined,
    violation: {
      store: false,
      input: [user, { type: "reasoning", id: "rs", summary: [] }, functionCall("a"), output("a")],
    },
  },
  {
    id: "RESPONSES-4",
    source: "OpenAI API: item of type 'reasoning' was provided without its required following item",
    check: ({ input }) => {
      const items = list(input);
      const alone = items.some((item, at) => {
        const next = items[at + 1];
        const follows =
          next?.type === "reasoning" || next?.type === "function_call" || next?.role === "assistant";
        return item.type === "reasoning" && !follows;
      });
      return alone ? "a reasoning item without its following item" : undefined;
    },
    violation: { input: [user, sealed("x"), user] },
  },
  {
    id: "RESPONSES-5",
    source: "OpenAI API reference: items of responses that were not stored cannot be referenced",
    check: ({ input, store }) =>
      store === false && list(input).some(({ type }) => type === "item_reference")
        ? "an item is not stored"
        : undefined,
    violation: { store: false, input: [user, { type: "item_reference", id: "x" }] },
  },
  {
    id: "RESPONSES-6",
    source: "OpenAI API: the encrypted content could not be verified",
    check: ({ input }, { signatures }) =>
      list(input).some((i) => i.type === "reasoning" && !signatures.has(String(i.encrypted_content)))
        ? "encrypted content could not be verified"
        : undefined,
    violation: { input: [user, sealed("forged"), functionCall("a"), output("a")] },
  },
  {
    id: "RESPONSES-7",
    source: "OpenAI guide, function calling: call_id matches an output to its call, so ids are unique",
    check: ({ input }) =>
      repeated(list(input).flatMap((i) => (i.type === "function_call" ? [String(i.call_id)] : []))),
    violation: { input: [user, functionCall("a"), output("a"), functionCall("a"), output("a")] },
  },
  {
    id: "RESPONSES-8",
    source:
      "OpenAI guide, structured outputs: strict needs additionalProperties false and all fields required",
    check: ({ tools }) => strictSchemas(list(tools)),
    violation: {
      input: [user],
      tools: [{ name: "a", strict: true, parameters: { type: "object", properties: { x: {} } } }],
    },
  },
];

// --- Anthropic Messages ---------------------------------------------------------------------------------------------

const said = (role: string, ...content: readonly object[]) => ({ role, content });
const text = (value: string) => ({ type: "text", text: value });
const use = (id: string) => ({ type: "tool_use", id, name: "look", input: {} });
const result = (tool_use_id: string) => ({ type: "tool_result", tool_use_id, content: "x" });
const thought = (signature: string) => ({ type: "thinking", thinking: "hm", signature });
const blocksOf = (message: Json | undefined) =>
  typeof message?.content === "string" ? [text(message.content)].map(record) : list(message?.content);
const ofType = (message: Json | undefined, type: string) =>
  blocksOf(message).filter((block) => block.type === type);
const isForced = (body: Json) => ["any", "tool"].includes(String(record(body.tool_choice).type));
const thinks = (body: Json) => ["enabled", "adaptive"].includes(String(record(body.thinking).type));
/** Models that always think, and whose thinking is bound to what came before it. */
const isNew = (body: Json) =>
  /claude-(?:opus|sonnet)-5-5|claude-(?:fable|mythos)-5-\d/.test(String(body.model));

const NOTICE = "<subject>::action_complete::</subject>";

const ANTHROPIC: readonly Rule[] = [
  {
    id: "ANTHROPIC-1",
    source: "Anthropic API: the first message must use the user role (also Bedrock)",
    check: ({ messages }) =>
      list(messages)[0]?.role === "user" ? undefined : "the first message is not the user's",
    violation: { messages: [said("assistant", text("x"))] },
  },
  {
    id: "ANTHROPIC-2",
    source: "Anthropic API: tool_use ids were found without tool_result blocks immediately after",
    check: ({ messages }) => {
      const all = list(messages);
      return all.some((message, at) => {
        const results = new Set(ofType(all[at + 1], "tool_result").map((block) => block.tool_use_id));
        return ofType(message, "tool_use").some(({ id }) => !results.has(id));
      })
        ? "tool_use without tool_result immediately after"
        : undefined;
    },
    violation: { messages: [said("user", text("x")), said("assistant", use("a")), said("user", text("y"))] },
  },
  {
    id: "ANTHROPIC-3",
    source:
      "Anthropic API: each tool_result block must have a corresponding tool_use block in the previous message",
    check: ({ messages }) => {
      const all = list(messages);
      return all.some((message, at) => {
        const uses = new Set(ofType(all[at - 1], "tool_use").map(({ id }) => id));
        return ofType(message, "tool_result").some((block) => !uses.has(block.tool_use_id));
      })
        ? "tool_result without tool_use"
        : undefined;
    },
    violation: { messages: [said("user", result("a"))] },
  },
  {
    id: "ANTHROPIC-4",
    source: "Anthropic guide, tool use: tool_result blocks come first in the content",
    check: ({ messages }) =>
      list(messages).some((message) => {
        const types = blocksOf(message).map(({ type }) => type);
        return (
          types.lastIndexOf("tool_result") > types.findIndex((type) => type !== "tool_result") &&
          types.includes("tool_result") &&
          types[0] !== "tool_result"
        );
      })
        ? "tool_result after other content"
        : undefined,
    violation: {
      messages: [said("user", text("x")), said("assistant", use("a")), said("user", text("y"), result("a"))],
    },
  },
  {
    id: "ANTHROPIC-5",
    source: "Anthropic API: text content blocks must contain non-whitespace text",
    check: ({ messages }) =>
      list(messages).some((message) =>
        ofType(message, "text").some((block) => String(block.text).trim() === ""),
      )
        ? "an empty text block"
        : undefined,
    violation: { messages: [said("user", text(" "))] },
  },
  {
    id: "ANTHROPIC-6",
    source: "Anthropic API: thinking may not be enabled when tool_choice forces tool use",
    check: (body) => (thinks(body) && isForced(body) ? "thinking with a forced tool" : undefined),
    violation: {
      messages: [said("user", text("x"))],
      thinking: { type: "adaptive" },
      tool_choice: { type: "any" },
    },
  },
  {
    id: "ANTHROPIC-7",
    source: "What's new in Claude Opus 5.5: forced tool use is not supported",
    check: (body) => (isNew(body) && isForced(body) ? "forced tool use is not supported" : undefined),
    violation: {
      model: "claude-opus-5-5",
      messages: [said("user", text("x"))],
      tool_choice: { type: "tool", name: "a" },
    },
  },
  {
    id: "ANTHROPIC-8",
    source:
      "What's new in Claude Opus 5.5 and Bedrock, adaptive thinking: thinking.type enabled is not supported",
    check: (body) =>
      (isNew(body) || /claude-opus-(?:4-[78]|5)/.test(String(body.model))) &&
      record(body.thinking).type === "enabled"
        ? "thinking.type.enabled is not supported for this model"
        : undefined,
    violation: {
      model: "claude-opus-4-8",
      messages: [said("user", text("x"))],
      thinking: { type: "enabled", budget_tokens: 1 },
    },
  },
  {
    id: "ANTHROPIC-9",
    source:
      "Anthropic guide, preserved thinking: system, tools and messages before a thinking block are unchanged",
    check: (body, { signatures }) => {
      if (!isNew(body)) return undefined;
      const all = list(body.messages);
      return all.some((message, at) =>
        ofType(message, "thinking").some((block) => {
          const bound = signatures.get(String(block.signature));
          return bound !== undefined && bound !== prefixOf(body, at);
        }),
      )
        ? "invalid `signature` in `thinking` block: the block is bound to a different conversation"
        : undefined;
    },
    violation: {
      model: "claude-opus-5-5",
      messages: [
        said("user", text("edited")),
        said("assistant", thought("issued"), text("x")),
        said("user", text("y")),
      ],
    },
  },
  {
    id: "ANTHROPIC-10",
    source: "Anthropic API: invalid signature in thinking block",
    check: ({ messages }, { signatures }) =>
      list(messages).some((message) =>
        ofType(message, "thinking").some((block) => !signatures.has(String(block.signature))),
      )
        ? "invalid `signature` in `thinking` block"
        : undefined,
    violation: { messages: [said("user", text("x")), said("assistant", thought("forged"), text("x"))] },
  },
  {
    id: "ANTHROPIC-11",
    source: "Anthropic API: max_tokens must be greater than thinking.budget_tokens",
    check: (body) => {
      const { type, budget_tokens: budget } = record(body.thinking);
      return type === "enabled" && Number(body.max_tokens) <= Number(budget)
        ? "max_tokens is too small"
        : undefined;
    },
    violation: {
      messages: [said("user", text("x"))],
      max_tokens: 5,
      thinking: { type: "enabled", budget_tokens: 9 },
    },
  },
  {
    id: "ANTHROPIC-12",
    source: "Anthropic API: with thinking enabled, expected thinking, but found tool_use",
    check: (body) => {
      const all = list(body.messages);
      const last = all.findLastIndex(({ role }) => role === "assistant");
      const first = blocksOf(all[last])[0]?.type;
      const isOpen = ofType(all[last], "tool_use").length > 0 && last === all.length - 2;
      return record(body.thinking).type === "enabled" && isOpen && first !== "thinking"
        ? "expected `thinking`, but found `tool_use`"
        : undefined;
    },
    violation: {
      thinking: { type: "enabled", budget_tokens: 1 },
      max_tokens: 2,
      messages: [said("user", text("x")), said("assistant", use("a")), said("user", result("a"))],
    },
  },
  {
    id: "ANTHROPIC-13",
    source: "Anthropic guide, prompt caching: up to 4 cache breakpoints",
    check: (body) =>
      JSON.stringify(body).split('"cache_control"').length > 5 ? "too many cache_control" : undefined,
    violation: {
      messages: [
        said(
          "user",
          ...[1, 2, 3, 4, 5].map((n) => ({ ...text(`${n}`), cache_control: { type: "ephemeral" } })),
        ),
      ],
    },
  },
  {
    id: "ANTHROPIC-14",
    source: "Anthropic API: the final block in an assistant message cannot be thinking",
    check: ({ messages }) =>
      list(messages).some((m) => m.role === "assistant" && blocksOf(m).at(-1)?.type === "thinking")
        ? "the final block is thinking"
        : undefined,
    violation: { messages: [said("user", text("x")), said("assistant", thought("issued"))] },
  },
  {
    id: "ANTHROPIC-15",
    source: "Anthropic API: tool_use ids must be unique and match ^[a-zA-Z0-9_-]+$",
    check: ({ messages }) => {
      const ids = list(messages).flatMap((m) => ofType(m, "tool_use").map(({ id }) => String(id)));
      return repeated(ids) ?? ids.find((id) => !/^[a-zA-Z0-9_-]+$/.test(id));
    },
    violation: {
      messages: [said("user", text("x")), said("assistant", use("a b")), said("user", result("a b"))],
    },
  },
  {
    id: "ANTHROPIC-16",
    source:
      "Anthropic guide, handling stop reasons: no text directly after tool results (not an error of the API)",
    check: ({ messages }) => {
      const last = list(messages).at(-1);
      return ofType(last, "tool_result").length > 0 && words(ofType(last, "text")).includes(NOTICE)
        ? "a notice follows the results"
        : undefined;
    },
    violation: {
      messages: [
        said("user", text("x")),
        said("assistant", use("a")),
        said("user", result("a"), text(NOTICE)),
      ],
    },
  },
];

/** What thinking is bound to. */
export function prefixOf(body: Json, upTo: number): string {
  const bound = { system: body.system, tools: body.tools, messages: list(body.messages).slice(0, upTo) };
  const plain = JSON.stringify(bound, (key, value) => (key === "cache_control" ? undefined : value));
  return createHash("sha256").update(plain).digest("hex");
}

// --- Google Gemini --------------------------------------------------------------------------------------------------

const part = (role: string, ...parts: readonly object[]) => ({ role, parts });
const fCall = (more: object = {}) => ({ functionCall: { id: "a", name: "look", args: {} }, ...more });
const fResult = { functionResponse: { id: "a", name: "look", response: {} } };
const partsOf = (content: Json | undefined) => list(content?.parts);
const callsOf = (content: Json | undefined) => partsOf(content).filter((p) => p.functionCall !== undefined);
const resultsOf = (content: Json | undefined) =>
  partsOf(content).filter((p) => p.functionResponse !== undefined);

const GEMINI: readonly Rule[] = [
  {
    id: "GEMINI-1",
    source: "Gemini API: the first content is the user's",
    check: ({ contents }) =>
      list(contents)[0]?.role === "user" ? undefined : "the first content is not the user's",
    violation: { contents: [part("model", text("x"))] },
  },
  {
    id: "GEMINI-2",
    source:
      "Gemini API: function call turn comes immediately after a user turn or after a function response turn",
    check: ({ contents }) => {
      const all = list(contents);
      return all.some((content, at) => callsOf(content).length > 0 && all[at - 1]?.role !== "user")
        ? "a function call turn does not follow a user turn"
        : undefined;
    },
    violation: {
      contents: [
        part("user", text("x")),
        part("model", text("y")),
        part("model", fCall()),
        part("user", fResult),
      ],
    },
  },
  {
    id: "GEMINI-3",
    source: "Gemini API: the number of function response parts equals the number of function call parts",
    check: ({ contents }) => {
      const all = list(contents);
      return all.some((c, at) => callsOf(c).length > 0 && callsOf(c).length !== resultsOf(all[at + 1]).length)
        ? "the number of responses is not that of the calls"
        : undefined;
    },
    violation: {
      contents: [part("user", text("x")), part("model", fCall(), fCall()), part("user", fResult)],
    },
  },
  {
    id: "GEMINI-4",
    source: "Gemini API: contents.parts must not be empty, nor a part's text",
    check: ({ contents }) =>
      list(contents).some((c) => partsOf(c).length === 0 || partsOf(c).some((p) => p.text === ""))
        ? "contents.parts must not be empty"
        : undefined,
    violation: { contents: [part("user")] },
  },
  {
    id: "GEMINI-5",
    source:
      "Gemini guide, thought signatures: the first function call of each step of the current turn has its signature",
    check: ({ contents }, { signatures }) => {
      const all = list(contents);
      const current = all.findLastIndex((c) => c.role === "user" && resultsOf(c).length === 0);
      return all.slice(current + 1).some((content) => {
        const [first] = callsOf(content);
        const signature = String(first?.thoughtSignature);
        return (
          first !== undefined &&
          signature !== "skip_thought_signature_validator" &&
          !signatures.has(signature)
        );
      })
        ? "function call is missing a thought_signature"
        : undefined;
    },
    violation: { contents: [part("user", text("x")), part("model", fCall()), part("user", fResult)] },
  },
  {
    id: "GEMINI-6",
    source: "Gemini guide, thinking: thinkingLevel and thinkingBudget cannot be combined",
    check: ({ generationConfig }) => {
      const { thinkingLevel, thinkingBudget } = record(record(generationConfig).thinkingConfig);
      return thinkingLevel !== undefined && thinkingBudget !== undefined ? "level and budget" : undefined;
    },
    violation: {
      contents: [part("user", text("x"))],
      generationConfig: { thinkingConfig: { thinkingLevel: "low", thinkingBudget: 1 } },
    },
  },
  {
    id: "GEMINI-7",
    source: "Gemini API: please use a valid role: user, model",
    check: ({ contents }) =>
      list(contents).some(({ role }) => role !== "user" && role !== "model") ? "invalid role" : undefined,
    violation: { contents: [part("user", text("x")), part("function", fResult)] },
  },
];

export const RULES: Readonly<Record<WireName, readonly Rule[]>> = {
  chat: CHAT,
  deepseek: DEEPSEEK,
  responses: RESPONSES,
  anthropic: ANTHROPIC,
  gemini: GEMINI,
};

/** A request that keeps all rules, with reasoning that the provider has issued. */
export function validRequest(wire: WireName): { readonly body: Json; readonly issued: Issued } {
  const signatures = new Map([["issued", "elsewhere"]]);
  const issued = { signatures };
  switch (wire) {
    case "chat":
      return { body: { messages: [user, called("a", "b"), answered("a"), answered("b"), user] }, issued };
    case "deepseek":
      return {
        body: { messages: [user, { ...called("a"), reasoning_content: "hm" }, answered("a")] },
        issued,
      };
    case "responses":
      return {
        body: { store: false, input: [user, sealed("issued"), functionCall("a"), output("a"), user] },
        issued,
      };
    case "anthropic": {
      const messages = [
        said("user", text("x")),
        said("assistant", thought("own"), use("a")),
        said("user", result("a")),
      ];
      const body = { model: "claude-opus-5-5", max_tokens: 9, messages };
      signatures.set("own", prefixOf(body, 1));
      return { body, issued };
    }
    case "gemini":
      return {
        body: {
          contents: [
            part("user", text("x")),
            part("model", fCall({ thoughtSignature: "issued" })),
            part("user", fResult),
          ],
        },
        issued,
      };
  }
}

function repeated(ids: readonly string[]): string | undefined {
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  return twice === undefined ? undefined : `the id ${twice} is used twice`;
}

function isJsonObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function strictSchemas(tools: readonly Json[]): string | undefined {
  const broken = tools.find((tool) => tool.strict === true && !isStrict(record(tool.parameters)));
  return broken === undefined ? undefined : `the schema of ${String(broken.name)} is not strict`;
}

function isStrict(schema: Json): boolean {
  if (schema.type !== "object" && schema.properties === undefined) return true;
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = Object.entries(record(schema.properties));
  return (
    schema.additionalProperties === false &&
    properties.every(([name, property]) => required.includes(name) && isStrict(record(property)))
  );
}
