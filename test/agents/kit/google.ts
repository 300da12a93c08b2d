/** Google's Gemini API: `generateContent` and `streamGenerateContent`. */
import { pieces } from "./chat.js";
import { callId, type Format, frame, type Json, list, type Reply, record, type Said, words } from "./wire.js";

export const google: Format = {
  path: /:(?:stream)?[gG]enerateContent(?:\?|$)/,
  read(body, url) {
    const contents = list(body.contents);
    if (contents[0]?.role !== "user") throw new Error("contents: the first must be the user's");
    const said = contents.map(saidIn);
    const config = record(record(body.toolConfig).functionCallingConfig);
    return {
      system: words(record(body.systemInstruction).parts),
      said,
      tools: list(body.tools).flatMap((tool) =>
        list(tool.functionDeclarations).map(({ name }) => String(name)),
      ),
      toolChoice: choiceIn(config),
      stream: url.includes(":streamGenerateContent"),
      body,
    };
  },
  whole(reply, id) {
    return chunk([...thought(reply), ...text(reply), ...calls(reply, id)], reply, finish(reply));
  },
  frames(reply, id) {
    return [
      ...thought(reply).map((part) => frame(chunk([part], reply))),
      ...pieces(reply.refusal ?? reply.text ?? "").map((piece) => frame(chunk([{ text: piece }], reply))),
      frame(chunk(calls(reply, id), reply, finish(reply))),
    ];
  },
  error: (status, message) => ({ error: { code: status, message, status: "INVALID_ARGUMENT" } }),
};

function saidIn({ role, parts: given }: Json): Said {
  const parts = list(given);
  const results = parts.flatMap(({ functionResponse }) => {
    if (functionResponse === undefined) return [];
    const { id, response } = record(functionResponse);
    return [{ id: String(id), content: String(record(response).content) }];
  });
  if (results.length > 0) return { role: "tool", text: "", calls: [], results, reasoning: [] };
  if (parts.length === 0) throw new Error("contents: parts must not be empty");
  const calls = parts.flatMap(({ functionCall }) => {
    if (functionCall === undefined) return [];
    const { id, name, args } = record(functionCall);
    return [{ id: String(id), name: String(name), args }];
  });
  const signed = parts.flatMap(({ thoughtSignature }) =>
    thoughtSignature === undefined ? [] : [String(thoughtSignature)],
  );
  const spoken = parts.filter(({ thought: isThought }) => isThought !== true);
  return {
    role: role === "model" ? "assistant" : "user",
    text: words(spoken),
    calls,
    results: [],
    reasoning: signed,
  };
}

function choiceIn({ mode, allowedFunctionNames }: Json): string | undefined {
  if (mode === undefined) return undefined;
  if (mode !== "ANY") return "auto";
  return Array.isArray(allowedFunctionNames) ? String(allowedFunctionNames[0]) : "required";
}

function thought({ reasoning }: Reply): object[] {
  return reasoning === undefined ? [] : [{ text: reasoning, thought: true }];
}

function text({ refusal, text: said }: Reply): object[] {
  const whole = refusal ?? said;
  return whole === undefined ? [] : [{ text: whole }];
}

/** Thinking is signed on its first call. Arguments are JSON, so they cannot be malformed. */
function calls({ calls: given = [], reasoning }: Reply, id: string): object[] {
  return given.map((call, index) => ({
    functionCall: { id: callId(id, call, index), name: call.name, args: call.args ?? {} },
    ...(index === 0 && reasoning !== undefined && { thoughtSignature: `signed:${reasoning}` }),
  }));
}

function chunk(parts: readonly object[], { usage }: Reply, finishReason?: string) {
  const { input, output, cached = 0 } = usage ?? { input: 1_500, output: 50 };
  return {
    candidates: [
      { index: 0, content: { role: "model", parts }, ...(finishReason !== undefined && { finishReason }) },
    ],
    usageMetadata: {
      promptTokenCount: input,
      candidatesTokenCount: output,
      totalTokenCount: input + output,
      ...(cached > 0 && { cachedContentTokenCount: cached }),
    },
    modelVersion: "test",
  };
}

function finish({ finish: why }: Reply): string {
  return why === "length" ? "MAX_TOKENS" : why === "content_filter" ? "SAFETY" : "STOP";
}
