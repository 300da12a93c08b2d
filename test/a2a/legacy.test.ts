/** A2A 0.3 in both directions: the official client of that version, and an agent that speaks it. */
import { createServer, type Server } from "node:http";
import type { Task } from "a2a-sdk-0.3";
import {
  ClientFactory,
  createAuthenticatingFetchWithRetry,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from "a2a-sdk-0.3/client";
import { afterEach, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { served } from "../kit/served.js";

let agent: Server | undefined;
afterEach(() => {
  agent?.closeAllConnections();
  agent?.close();
  agent = undefined;
});

function connect(url: string, token: string) {
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ authorization: `Bearer ${token}` }),
    shouldRetryWithHeaders: async () => undefined,
  });
  return new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver(),
  }).createFromUrl(url);
}

let sent = 0;
const say = (text: string, where: { readonly taskId?: string; readonly contextId?: string } = {}) => ({
  message: {
    kind: "message" as const,
    messageId: `m-${sent++}`,
    role: "user" as const,
    parts: [{ kind: "text" as const, text }],
    ...where,
  },
});

function taskIn(result: object): Task {
  if (!("kind" in result) || result.kind !== "task") throw new Error("a task was expected");
  return result as Task;
}

const textOf = ({ artifacts = [] }: Task) =>
  artifacts.flatMap(({ parts }) => parts.map((part) => (part.kind === "text" ? part.text : ""))).join("");

describe("a client of version 0.3", () => {
  it("[AGENTS-T-12] finds the card, sends messages, continues and reads tasks", async () => {
    await using server = await served(ASKING_SWARM);
    const ann = await connect(server.url, "user:ann");
    const task = taskIn(await ann.sendMessage(say("hello")));
    expect(task.status.state).toBe("completed");
    expect(textOf(task)).toBe("You said: hello");
    expect(textOf(await ann.getTask({ id: task.id }))).toBe("You said: hello");
    const paused = taskIn(await ann.sendMessage(say("ask")));
    expect(paused.status.state).toBe("input-required");
    const { id: taskId, contextId } = paused;
    expect(textOf(taskIn(await ann.sendMessage(say("yes", { taskId, contextId }))))).toBe("They said: yes");
    await expect(ann.getTask({ id: "none" })).rejects.toThrow();
  });

  it("[AGENTS-T-12] streams a task to its end", async () => {
    await using server = await served(ASKING_SWARM);
    const ann = await connect(server.url, "user:ann");
    const events: object[] = [];
    for await (const event of ann.sendMessageStream(say("hello"))) events.push(event);
    expect(events[0]).toMatchObject({ kind: "task" });
    expect(events.at(-1)).toMatchObject({ status: { state: "completed" } });
    const request = { jsonrpc: "2.0", id: 1, method: "message/stream", params: say("again") };
    const response = await fetch(`${server.url}/a2a`, {
      method: "POST",
      headers: { authorization: "Bearer user:ann", "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    expect(await response.text()).toContain('"state":"completed"');
  });
});

/** Serves one agent, whose card and answer are given. */
async function serve(card: (url: string) => object, answer: (method: string) => object): Promise<string> {
  agent = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    response.setHeader("content-type", "application/json");
    if (request.url?.includes("agent-card") === true) return void response.end(JSON.stringify(card(url)));
    const { id, method } = JSON.parse(body);
    response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer(String(method)) }));
  });
  await new Promise<void>((resolve) => agent?.listen(0, "127.0.0.1", resolve));
  const address = agent.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  return url;
}

const COMMON = { name: "x", description: "x", version: "1", skills: [], capabilities: {} };

/** A swarm that forwards its mail to the agent. */
const FORWARDING = JSON.stringify([
  {
    name: "home",
    version: "1.0.0",
    entrypoint: "lead",
    enable_interswarm: true,
    agents: [
      {
        name: "lead",
        factory: "mail:scripted",
        comm_targets: ["desk@lab"],
        enable_entrypoint: true,
        enable_interswarm: true,
        can_complete_tasks: true,
        agent_params: {
          rules: [
            { when: { from: "desk@lab" }, do: [{ task_complete: "lab: {{body}}" }] },
            { when: { from_type: "system" }, do: [{ task_complete: "system: {{body}}" }] },
            { do: [{ send_request: { target: "desk@lab", subject: "Ask", body: "{{body}}" } }] },
          ],
        },
      },
    ],
  },
]);

async function askThrough(url: string): Promise<string> {
  const config = `[a2a]\nallow = ["loopback"]\n[a2a.agents]\nlab = { url = "${url}" }\n`;
  await using server = await served(FORWARDING, config);
  const { response } = await new MailClient(server.url, { token: "user:ann" }).postMessage("question");
  return response;
}

describe("an agent elsewhere", () => {
  it("[AGENTS-T-12] may speak version 0.3", async () => {
    const methods: string[] = [];
    const url = await serve(
      (base) => ({
        ...COMMON,
        protocolVersion: "0.3.0",
        url: `${base}/rpc`,
        preferredTransport: "JSONRPC",
        defaultInputModes: [],
        defaultOutputModes: [],
      }),
      (method) => {
        methods.push(method);
        const parts = [{ kind: "text", text: "an answer of 0.3" }];
        return { result: { kind: "message", messageId: "a", role: "agent", parts } };
      },
    );
    expect(await askThrough(url)).toBe("lab: an answer of 0.3");
    expect(methods).toEqual(["message/send"]);
  });

  it("[AGENTS-T-13] may answer with a file, and the rest of the answer arrives", async () => {
    const url = await serve(
      (base) => ({
        ...COMMON,
        supportedInterfaces: [{ url: `${base}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      }),
      () => {
        const parts = [
          { text: "Here is the report." },
          { raw: "UERG", mediaType: "application/pdf", filename: "r.pdf" },
        ];
        const artifacts = [{ artifactId: "a", parts }];
        return {
          result: {
            task: {
              id: "t1",
              contextId: "c1",
              status: { state: "TASK_STATE_COMPLETED" },
              artifacts,
              history: [],
            },
          },
        };
      },
    );
    expect(await askThrough(url)).toBe(
      "lab: Here is the report.\n\n(file r.pdf, application/pdf, 3 bytes, not transferred)",
    );
  });
});
