/** The swarm as an A2A agent, used by the official client through the real server. */
import { type Message, Role, type Task, TaskState } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  createAuthenticatingFetchWithRetry,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from "@a2a-js/sdk/client";
import { describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { served } from "../kit/served.js";

function connect(url: string, token: string): Promise<Client> {
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
function say(text: string, where: { contextId?: string; taskId?: string; returnImmediately?: boolean } = {}) {
  const { contextId = "", taskId = "", returnImmediately = false } = where;
  const part = {
    content: { $case: "text" as const, value: text },
    metadata: undefined,
    filename: "",
    mediaType: "",
  };
  const message: Message = {
    messageId: `m-${sent++}`,
    contextId,
    taskId,
    role: Role.ROLE_USER,
    parts: [part],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  const configuration = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately };
  return { tenant: "", message, configuration, metadata: undefined };
}

async function ask(client: Client, ...words: Parameters<typeof say>): Promise<Task> {
  const result = await client.sendMessage(say(...words));
  if ("messageId" in result) throw new Error("a task was expected");
  return result;
}

const id = (task: Task) => ({ tenant: "", id: task.id, metadata: undefined });
const textOf = (task: Task) =>
  task.artifacts.flatMap(({ parts }) => parts.map(({ content }) => content?.value)).join("");

describe("the swarm as an A2A agent", () => {
  it("[AGT-PEER-01] publishes its card, and answers a message", async () => {
    await using server = await served(ASKING_SWARM);
    const ann = await connect(server.url, "user:ann");
    expect(await ann.getAgentCard()).toMatchObject({ name: "asking", capabilities: { streaming: true } });
    const task = await ask(ann, "hello");
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(textOf(task)).toBe("You said: hello");
    expect(await ann.getTask(id(task))).toMatchObject({ id: task.id, contextId: task.contextId });
  });

  it("[AGT-PEER-02] a context is a MAIL task, the caller's on every door, and each round is a task", async () => {
    await using server = await served(ASKING_SWARM);
    const ann = await connect(server.url, "user:ann");
    const first = await ask(ann, "one");
    const second = await ask(ann, "two", { contextId: first.contextId });
    expect(second.contextId).toBe(first.contextId);
    expect(second.id).not.toBe(first.id);
    expect(textOf(await ann.getTask(id(first)))).toBe("You said: one");
    const http = new MailClient(server.url, { token: "user:ann" });
    expect(await http.getTask(first.contextId)).toMatchObject({ task_id: first.contextId });

    const all = { tenant: "", contextId: "", status: 0, pageToken: "", statusTimestampAfter: undefined };
    expect((await ann.listTasks({ ...all, pageSize: 1 })).totalSize).toBe(2);
    // Nobody else finds them.
    const bob = await connect(server.url, "user:bob");
    await expect(bob.getTask(id(first))).rejects.toThrow("there is no task");
    expect((await bob.listTasks(all)).tasks).toEqual([]);
  });

  it("[AGT-PEER-03] a paused task asks for input, and the next message is the answer", async () => {
    await using server = await served(ASKING_SWARM);
    const ann = await connect(server.url, "user:ann");
    const paused = await ask(ann, "ask");
    expect(paused.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    expect(JSON.stringify(paused.status?.message)).toContain("Umbrella?");
    const done = await ask(ann, "yes", { taskId: paused.id, contextId: paused.contextId });
    expect(done).toMatchObject({ id: paused.id, status: { state: TaskState.TASK_STATE_COMPLETED } });
    expect(textOf(done)).toBe("They said: yes");
    await expect(ask(ann, "more", { taskId: paused.id })).rejects.toThrow("has ended");
  });

  it("[AGT-PEER-04] streams a task to its end, also to those who come later, and cancels", async () => {
    await using server = await served(ASKING_SWARM);
    const ann = await connect(server.url, "user:ann");
    const kinds: (string | undefined)[] = [];
    for await (const { payload } of ann.sendMessageStream(say("hello"))) kinds.push(payload?.$case);
    expect(kinds).toEqual(["task", "artifactUpdate", "statusUpdate"]);

    const running = await ask(ann, "wait", { returnImmediately: true });
    expect(running.status?.state).toBe(TaskState.TASK_STATE_WORKING);
    const stream = ann.resubscribeTask(id(running));
    expect((await stream.next()).value).toMatchObject({ payload: { $case: "task" } });
    const next = stream.next();
    const cancelled = await ann.cancelTask(id(running));
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    expect((await next).value).toMatchObject({
      payload: { $case: "statusUpdate", value: { status: { state: TaskState.TASK_STATE_CANCELED } } },
    });
    expect((await stream.next()).done).toBe(true);
    await expect(ann.cancelTask(id(running))).rejects.toThrow("has ended");
  });

  it("[AGT-PEER-05] is for users and admins with a good token", async () => {
    await using server = await served(ASKING_SWARM);
    const call = async (token: string) => {
      const headers = {
        "content-type": "application/json",
        authorization: `Bearer ${token}`,
        "a2a-version": "1.0",
      };
      return (await fetch(`${server.url}/a2a`, { method: "POST", headers, body: "{}" })).status;
    };
    expect(await call("agent:other")).toBe(403);
    expect(await call("member:clerk")).toBe(403);
    expect(await call("nonsense")).toBe(401);
    expect(await call("user:ann")).toBe(200);
  });

  it("refuses what it cannot do in the protocol's own words", async () => {
    await using server = await served(ASKING_SWARM);
    const rpc = async (body: unknown, version = "1.0") => {
      const headers = {
        "content-type": "application/json",
        authorization: "Bearer user:ann",
        "a2a-version": version,
      };
      const answer = await fetch(`${server.url}/a2a`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      return answer.json();
    };
    const request = { jsonrpc: "2.0", id: 1 };
    expect(await rpc({ ...request, method: "Nonsense", params: {} })).toMatchObject({
      error: { code: -32601 },
    });
    expect(await rpc({ ...request, method: "SendMessage", params: {} })).toMatchObject({
      error: { code: -32602 },
    });
    expect(await rpc({ ...request, method: "GetTask", params: { id: "x" } })).toMatchObject({
      error: { code: -32001 },
    });
    expect(await rpc({ ...request, method: "GetTask", params: { id: "x" } }, "9.9")).toMatchObject({
      id: 1,
      error: { code: -32009 },
    });
    expect(await rpc([])).toMatchObject({ error: expect.anything() });
  });
});
