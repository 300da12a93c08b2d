/** A small swarm with two model agents. */
import {
  defineAction,
  defineAgent,
  defineSwarm,
  Mailroom,
  type MailroomOptions,
  type ModelAgentOptions,
  modelAgent,
} from "../../../src/index.js";
import type { Behaviour, Model, ModelServer, Request } from "./model-server.js";

export interface Way {
  readonly name: string;
  readonly options: Omit<ModelAgentOptions, "system">;
}

/** Every wire format, streamed and not. */
export function ways(server: () => ModelServer): Way[] {
  const formats: [string, () => Omit<ModelAgentOptions, "system">][] = [
    ["OpenAI Chat Completions", () => ({ llm: "openai/gpt-test", toolFormat: "completions" })],
    ["OpenAI Responses", () => ({ llm: "openai/gpt-test", toolFormat: "responses" })],
    ["Anthropic Messages", () => ({ llm: "anthropic/claude-sonnet-4-5" })],
    ["Google Gemini", () => ({ llm: "google/gemini-test" })],
    ["an OpenAI-compatible server", () => ({ llm: "vllm/some-model", baseUrl: server().url })],
  ];
  return formats.flatMap(([name, options]) =>
    [false, true].map((streamTokens) => ({
      name: `${name}, ${streamTokens ? "streamed" : "whole"}`,
      get options() {
        return { ...options(), streamTokens };
      },
    })),
  );
}

const STOCK: Readonly<Record<string, string>> = { ink: "7 bottles", paper: "2 reams" };

export interface Office {
  readonly mailroom: Mailroom;
  /** Number of runs of the action, by its argument. */
  readonly lookedUp: string[];
}

export async function openOffice(
  server: ModelServer,
  options: Omit<ModelAgentOptions, "system">,
  more: Partial<MailroomOptions> & {
    readonly env?: Record<string, string>;
    readonly print?: (text: string) => void;
  } = {},
): Promise<Office> {
  const { env, print, ...rest } = more;
  const lookedUp: string[] = [];
  const lookUp = defineAction({
    name: "look_up",
    description: "Says how much of something is in stock",
    parameters: {
      type: "object",
      properties: { item: { type: "string" } },
      required: ["item"],
      additionalProperties: false,
    },
    idempotent: true,
    run: ({ item }) => {
      lookedUp.push(String(item));
      const found = STOCK[String(item)];
      if (found === undefined) throw new Error(`unknown item: ${String(item)}`);
      return found;
    },
  });
  const environment = {
    env: { ...server.env, ...env },
    backoff: { base: 1, factor: 1, cap: 1, jitter: 0 },
    ...(print !== undefined && { print }),
  };
  const swarm = defineSwarm({
    name: "office",
    agents: [
      defineAgent({
        name: "head",
        enableEntrypoint: true,
        canCompleteTasks: true,
        commTargets: ["clerk"],
        run: modelAgent({ ...options, system: "You lead the office." }, environment),
      }),
      defineAgent({
        name: "clerk",
        description: "Knows the stock",
        commTargets: ["head"],
        actions: [lookUp],
        run: modelAgent({ ...options, system: "You keep the stock." }, environment),
      }),
    ],
  });
  return { mailroom: await Mailroom.open({ swarm, data: false, onProblem: () => {}, ...rest }), lookedUp };
}

export const reply = {
  ask: (target: string, body: string) =>
    ({ calls: [{ name: "send_request", args: { target, subject: "Question", body } }] }) satisfies Behaviour,
  respond: (target: string, body: string) =>
    ({ calls: [{ name: "send_response", args: { target, subject: "Answer", body } }] }) satisfies Behaviour,
  finish: (finish_message: string) =>
    ({ calls: [{ name: "task_complete", args: { finish_message } }] }) satisfies Behaviour,
};

/** Asks the clerk for ink and paper, and answers with the results. */
export const sensible: Model = ({ agent, said }) => {
  const last = said.at(-1);
  if (agent === "clerk") {
    const results = last?.results ?? [];
    if (results.length === 0 || results.some(({ content }) => content === "SUCCESS: message sent")) {
      const calls = ["ink", "paper"].map((item) => ({ name: "look_up", args: { item } }));
      return { text: "Let me see.", calls };
    }
    const found = results.map(({ content }) => content.replace("SUCCESS: ", ""));
    return reply.respond("head", found.join(" and "));
  }
  const answer = /<from type="agent">clerk<\/from>[\s\S]*<body>(.*)<\/body>/.exec(last?.text ?? "")?.[1];
  return answer === undefined
    ? reply.ask("clerk", "What is in stock?")
    : reply.finish(`There are ${answer}.`);
};

/** Replies with `first` as long as it returns a reply, then with the default. */
export function atFirst(first: (request: Request, count: number) => Behaviour | undefined): Model {
  return (request, count) => first(request, count) ?? sensible(request, count);
}

export const ANSWER = "There are 7 bottles and 2 reams.";
