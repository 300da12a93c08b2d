/** OpenAI Chat Completions. */
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

export const chat: Format = {
  path: /\/chat\/completions$/,
  read(body) {
    const messages = list(body.messages);
    const said: Said[] = [];
    for (const message of messages) {
      if (message.role === "tool") {
        const result = { id: String(message.tool_call_id), content: words(message.content) };
        const last = said.at(-1);
        // One message for each result. Together they answer the preceding calls.
        if (last?.role === "tool") said[said.length - 1] = { ...last, results: [...last.results, result] };
        else said.push({ role: "tool", text: "", calls: [], results: [result], reasoning: [] });
      } else if (message.role === "user" || message.role === "assistant") {
        const calls = list(message.tool_calls).map((call) => {
          const called = record(call.function);
          return {
            id: String(call.id),
            name: String(called.name),
            args: JSON.parse(String(called.arguments)),
          };
        });
        const { reasoning_content: thought } = message;
        const reasoning = thought === undefined ? [] : [String(thought)];
        said.push({ role: message.role, text: words(message.content), calls, results: [], reasoning });
      }
    }
    const choice = body.tool_choice;
    return {
      system: messages
        .filter(({ role }) => role === "system" || role === "developer")
        .map(({ content }) => words(content))
        .join("\n"),
      said,
      tools: list(body.tools).map((tool) => String(record(tool.function).name)),
      toolChoice:
        typeof choice === "string"
          ? choice
          : choice === undefined
            ? undefined
            : String(record(record(choice).function).name),
      stream: body.stream === true,
      body,
    };
  },
  whole(reply, id) {
    return {
      id,
      object: "chat.completion",
      created: 0,
      model: "test",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: reply.text ?? null,
            refusal: reply.refusal ?? null,
            ...(reply.reasoning !== undefined && { reasoning_content: reply.reasoning }),
            ...(reply.calls !== undefined && { tool_calls: toolCalls(reply, id) }),
          },
          finish_reason: finish(reply),
        },
      ],
      usage: usage(reply),
    };
  },
  frames(reply, id) {
    const chunk = (delta: unknown, finish_reason: string | null = null) =>
      frame({
        id,
        object: "chat.completion.chunk",
        created: 0,
        model: "test",
        choices: [{ index: 0, delta, finish_reason }],
      });
    return [
      chunk({ role: "assistant" }),
      ...(reply.reasoning === undefined ? [] : [chunk({ reasoning_content: reply.reasoning })]),
      ...pieces(reply.text ?? "").map((content) => chunk({ content })),
      ...(reply.refusal === undefined ? [] : [chunk({ refusal: reply.refusal })]),
      ...toolCalls(reply, id).flatMap(({ function: called, ...call }, index) => [
        chunk({ tool_calls: [{ index, ...call, function: { name: called.name, arguments: "" } }] }),
        ...pieces(called.arguments).map((text) =>
          chunk({ tool_calls: [{ index, function: { arguments: text } }] }),
        ),
      ]),
      chunk({}, finish(reply)),
      frame({
        id,
        object: "chat.completion.chunk",
        created: 0,
        model: "test",
        choices: [],
        usage: usage(reply),
      }),
      frame("[DONE]"),
    ];
  },
  error: (status, message) => ({ error: { message, type: "error", param: null, code: String(status) } }),
};

export function pieces(text: string): string[] {
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)].filter((piece) => piece !== "");
}

function toolCalls(reply: Reply, id: string) {
  return (reply.calls ?? []).map((call, index) => ({
    id: callId(id, call, index),
    type: "function",
    function: { name: call.name, arguments: argumentsOf(call) },
  }));
}

function finish(reply: Reply): string {
  return reply.finish ?? (reply.calls === undefined ? "stop" : "tool_calls");
}

function usage({ usage: { input, output, cached = 0 } = { input: 1_500, output: 50 } }: Reply) {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  };
}
