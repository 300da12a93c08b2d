/** OpenAI Responses. */
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

export const responses: Format = {
  path: /\/responses$/,
  read(body) {
    const items = list(body.input);
    const said: Said[] = [];
    const append = (role: Said["role"], part: Partial<Said>): void => {
      const last = said.at(-1);
      const joins = last?.role === role && (part.text === undefined || part.text === "");
      const base = joins ? last : { role, text: "", calls: [], results: [], reasoning: [] };
      const merged = {
        ...base,
        text: base.text + (part.text ?? ""),
        calls: [...base.calls, ...(part.calls ?? [])],
        results: [...base.results, ...(part.results ?? [])],
        reasoning: [...base.reasoning, ...(part.reasoning ?? [])],
      };
      if (joins) said[said.length - 1] = merged;
      else said.push(merged);
    };
    for (const item of items) {
      if (item.type === "function_call") {
        const call = {
          id: String(item.call_id),
          name: String(item.name),
          args: JSON.parse(String(item.arguments)),
        };
        append("assistant", { calls: [call] });
      } else if (item.type === "function_call_output") {
        append("tool", { results: [{ id: String(item.call_id), content: words(item.output) }] });
      } else if (item.type === "reasoning") {
        append("assistant", { reasoning: [String(item.encrypted_content)] });
      } else if (item.role === "user" || item.role === "assistant") {
        append(item.role, { text: words(item.content) });
      }
    }
    const choice = body.tool_choice;
    return {
      system: items
        .filter(({ role }) => role === "system" || role === "developer")
        .map(({ content }) => words(content))
        .join("\n"),
      said,
      tools: list(body.tools).map(({ name }) => String(name)),
      toolChoice:
        typeof choice === "string" ? choice : choice === undefined ? undefined : String(record(choice).name),
      stream: body.stream === true,
      body,
    };
  },
  whole: (reply, id) => response(reply, id, items(reply, id)),
  frames(reply, id) {
    let sequence = 0;
    const event = (type: string, data: object) => frame({ type, sequence_number: sequence++, ...data }, type);
    const all = items(reply, id);
    return [
      event("response.created", { response: { ...response(reply, id, []), status: "in_progress" } }),
      ...all.flatMap((item, output_index) => {
        const item_id = item.id;
        const added = (shown: object) =>
          event("response.output_item.added", { output_index, item: { ...item, ...shown } });
        const done = event("response.output_item.done", { output_index, item });
        if (item.type === "reasoning") return [added({}), done];
        if (item.type === "function_call") {
          const deltas = pieces(item.arguments).map((delta) =>
            event("response.function_call_arguments.delta", { item_id, output_index, delta }),
          );
          return [added({ arguments: "" }), ...deltas, done];
        }
        const deltas = pieces(item.content[0]?.text ?? "").map((delta) =>
          event("response.output_text.delta", { item_id, output_index, content_index: 0, delta }),
        );
        return [added({ content: [] }), ...deltas, done];
      }),
      event("response.completed", { response: response(reply, id, all) }),
    ];
  },
  error: (status, message) => ({ error: { message, type: "error", param: null, code: String(status) } }),
};

function items(reply: Reply, id: string) {
  const text = reply.refusal ?? reply.text;
  return [
    ...(reply.reasoning === undefined
      ? []
      : [
          {
            type: "reasoning" as const,
            id: `rs_${id}`,
            encrypted_content: `sealed:${reply.reasoning}`,
            summary: [{ type: "summary_text", text: reply.reasoning }],
          },
        ]),
    ...(text === undefined
      ? []
      : [
          {
            type: "message" as const,
            id: `msg_${id}`,
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text, annotations: [] }],
          },
        ]),
    ...(reply.calls ?? []).map((call, index) => ({
      type: "function_call" as const,
      id: `fc_${id}_${index}`,
      call_id: callId(id, call, index),
      name: call.name,
      arguments: argumentsOf(call),
      status: "completed",
    })),
  ];
}

function response(reply: Reply, id: string, output: readonly unknown[]) {
  const { input, output: used, cached = 0 } = reply.usage ?? { input: 1_500, output: 50 };
  const reason = reply.finish === "length" ? "max_output_tokens" : reply.finish;
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: 0,
    model: "test",
    status: reason === undefined ? "completed" : "incomplete",
    incomplete_details: reason === undefined ? null : { reason },
    output,
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: used,
      output_tokens_details: { reasoning_tokens: 0 },
    },
  };
}
