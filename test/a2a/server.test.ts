/** Tests the swarm as an A2A agent with the official client and the real server. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
interface Where {
  readonly contextId?: string;
  readonly taskId?: string;
  readonly messageId?: string;
  readonly returnImmediately?: boolean;
}

function say(text: string, where: Where = {}) {
  const { contextId = "", taskId = "", messageId = `m-${sent++}`, returnImmediately = false } = where;
  const part = {
    content: { $case: "text" as const, value: text },
    metadata: undefined,
    filename: "",
    mediaType: "",
  };
  const message: Message = {
    messageId,
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

const KEYLESS_SWARM = JSON.stringify([
  {
    name: "keyless",
    version: "1.0.0",
    entrypoint: "desk",
    agents: [
      {
        name: "desk",
        factory: "mail:supervisor",
        comm_targets: [],
        enable_entrypoint: true,
        can_complete_tasks: true,
        agent_params: {
          llm: "openai/gpt-test",
          use_proxy: false,
          api_key_env: "MAILROOM_TEST_NO_SUCH_KEY",
          system: "You answer.",
        },
      },
    ],
  },
]);

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

  it("[AGT-PEER-02] a context is a MAIL task, visible to the caller through every protocol, and each round is a task", async () => {
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
    // Other callers cannot find them.
    const bob = await connect(server.url, "user:bob");
    await expect(bob.getTask(id(first))).rejects.toThrow("unknown task");
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

  it("[AGT-APPR-06] text approves nothing; a data part with decisions does, and the call then runs", async () => {
    await using server = await served(ASKING_SWARM);
    const { runtime } = server.running.mailroom;
    const { definition } = runtime;
    const actions = definition.actions.map((one) => ({ ...one, approval: true, run: () => "bought" }));
    runtime.redefine({ ...definition, breakpointTools: [], actions, hash: "approval" });
    const ann = await connect(server.url, "user:ann");
    const paused = await ask(ann, "ask");
    expect(paused.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const shown = JSON.stringify(paused.status?.message);
    expect(shown).toContain('"approvals":[{');
    const at = { taskId: paused.id, contextId: paused.contextId };
    await expect(ask(ann, "yes, do it", at)).rejects.toThrow("call_id");
    const call_id = /"call_id":"([^"]+)"/.exec(shown)?.[1];
    const request = say("", at);
    const [part] = request.message.parts;
    if (part === undefined) throw new Error("a message has a part");
    const value = { decisions: [{ call_id, decision: "approve" }] };
    request.message.parts = [{ ...part, content: { $case: "data", value } }];
    await ann.sendMessage(request);
    expect(textOf(await ann.getTask(id(paused)))).toBe("They said: bought");
  });

  it("[AGT-PEER-04] streams a task to its end, also to later subscribers, and cancels", async () => {
    await using server = await served(ASKING_SWARM);
    const ann = await connect(server.url, "user:ann");
    const kinds: (string | undefined)[] = [];
    const texts: string[] = [];
    for await (const { payload } of ann.sendMessageStream(say("hello"))) {
      kinds.push(payload?.$case);
      texts.push(JSON.stringify(payload));
    }
    // A round that has ended before the first read is sent as a whole.
    expect([["task"], ["task", "artifactUpdate", "statusUpdate"]]).toContainEqual(kinds);
    expect(texts.join()).toContain("You said: hello");

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

  it("[AGT-PEER-10] a message that is sent twice is executed once, also after a restart", async () => {
    const directory = await mkdtemp(join(tmpdir(), "mailroom-a2a-"));
    const all = { tenant: "", contextId: "", status: 0, pageToken: "", statusTimestampAfter: undefined };
    const once = { messageId: "only-once" };
    try {
      const first = await served(ASKING_SWARM, "", directory);
      const ann = await connect(first.url, "user:ann");
      const [one, other] = await Promise.all([ask(ann, "hello", once), ask(ann, "hello", once)]);
      expect(other.id).toBe(one.id);
      const paused = await ask(ann, "ask");
      const where = { taskId: paused.id, contextId: paused.contextId, messageId: "the-answer" };
      const done = await ask(ann, "yes", where);
      await first[Symbol.asyncDispose]();

      await using second = await served(ASKING_SWARM, "", directory);
      const again = await connect(second.url, "user:ann");
      const repeated = await ask(again, "hello", once);
      expect(repeated).toMatchObject({ id: one.id, contextId: one.contextId });
      expect(textOf(repeated)).toBe("You said: hello");
      // The same for an answer to a breakpoint, although the answered task has since ended.
      expect(await ask(again, "yes", where)).toMatchObject({ id: done.id, artifacts: done.artifacts });
      expect((await again.listTasks(all)).totalSize).toBe(2);
      await expect(ask(again, "something else", once)).rejects.toThrow("was used for another message");
      // The id is the caller's own.
      const bob = await connect(second.url, "user:bob");
      expect((await ask(bob, "hello", once)).id).not.toBe(one.id);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it("[AGT-MODEL-20] a task that waits for credentials reports it through every protocol", async () => {
    await using server = await served(KEYLESS_SWARM);
    const http = new MailClient(server.url, { token: "user:ann" });
    const held = await http.postMessage("hello", { taskId: "t" });
    expect(held).toMatchObject({ status: "paused", reason: "credentials" });
    expect(held.response).toContain("set MAILROOM_TEST_NO_SUCH_KEY");
    expect(await http.getTask("t")).toMatchObject({ status: "paused", reason: "credentials" });
    const ann = await connect(server.url, "user:ann");
    const all = { tenant: "", contextId: "t", status: 0, pageToken: "", statusTimestampAfter: undefined };
    const [task] = (await ann.listTasks(all)).tasks;
    expect(task?.status?.state).toBe(TaskState.TASK_STATE_AUTH_REQUIRED);
    expect(JSON.stringify(task?.status?.message)).toContain("set MAILROOM_TEST_NO_SUCH_KEY");
    await http.cancelTask("t");
    expect((await ann.listTasks(all)).tasks[0]?.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
  });

  it("[AGT-PEER-05] accepts only users and admins with a valid token", async () => {
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

  it("rejects unsupported methods with the protocol's errors", async () => {
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
