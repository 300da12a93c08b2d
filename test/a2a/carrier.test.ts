/** Tests A2A agents as comm targets: one server's swarm writes to another's as `name@alias`. */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { MailroomError, systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { MailClient } from "../../src/client/index.js";
import { A2aCarrier, type A2aCarrierOptions } from "../../src/doors/a2a/index.js";
import type { Carrier } from "../../src/engine/carrier.js";
import type { Runtime } from "../../src/engine/runtime/index.js";
import type { Entry } from "../../src/engine/task/entries.js";
import { Mailroom } from "../../src/library/mailroom.js";
import { openStore } from "../../src/store/index.js";
import { loadSwarmsFromText } from "../../src/swarm/load.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { served } from "../kit/served.js";

/** A swarm whose lead writes to the lab by the given rules, and otherwise forwards its mail. */
const swarmWith = (...rules: readonly object[]) =>
  JSON.stringify([
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
              ...rules,
              { when: { from: "desk@lab" }, do: [{ task_complete: "lab: {{body}}" }] },
              { when: { from_type: "system" }, do: [{ task_complete: "system: {{body}}" }] },
              { do: [{ send_request: { target: "desk@lab", subject: "Ask", body: "{{body}}" } }] },
            ],
          },
        },
      ],
    },
  ]);

/** Forwards mail to the lab and back. */
const PASSER_ON = swarmWith();

/** Also answers the lab's questions. */
const WRITER = swarmWith({
  when: { from: "desk@lab", body: "Umbrella?" },
  do: [{ send_request: { target: "desk@lab", subject: "Re", body: "take one" } }],
});

async function definitionOf(text: string) {
  const [loaded] = await loadSwarmsFromText(text);
  if (loaded === undefined) throw new Error("the file has one swarm");
  return loaded.definition;
}

const config = (url: string, settings = "") =>
  `[a2a]\n${settings}\nallow = ["loopback"]\n[a2a.agents]\nlab = { url = "${url}", token = "user:home" }\n`;

function cardAt(url: string): string {
  const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  return JSON.stringify({
    name: "x",
    description: "x",
    version: "1",
    supportedInterfaces,
    skills: [],
    capabilities: {},
  });
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** A server that is closed after the test. */
async function listening(handle: RequestListener): Promise<string> {
  const server = createServer(handle);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("it has no port");
  return `http://127.0.0.1:${address.port}`;
}

/** An A2A agent whose card names the server of `answer`. */
async function agent(answer: RequestListener, card: () => number = () => 200): Promise<string> {
  const url = await listening((request, response) => {
    if (request.url === "/rpc") answer(request, response);
    else response.writeHead(card(), { "content-type": "application/json" }).end(cardAt(`${url}/rpc`));
  });
  return url;
}

interface Told {
  readonly contextId?: string;
  readonly taskId?: string;
  readonly parts: readonly { readonly text: string }[];
}

/** An agent with scripted answers, and the messages that it received. Statuses other than 200 have no body. */
async function agentWho(
  reply: (message: Told) => object,
  { card = () => 200, rpc = () => 200 }: { card?: () => number; rpc?: () => number } = {},
): Promise<{ url: string; heard: Told[] }> {
  const heard: Told[] = [];
  const url = await agent(async (request, response) => {
    const { id, params } = JSON.parse(await text(request));
    const status = rpc();
    if (status !== 200) return response.writeHead(status).end("not now");
    heard.push(params.message);
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id, ...reply(params.message) }));
  }, card);
  return { url, heard };
}

type Store = Awaited<ReturnType<typeof openStore>>;

function carrierTo(url: string, store: Store, more: Partial<A2aCarrierOptions> = {}): A2aCarrier {
  const agents = { lab: { url, token: "user:home" } };
  return new A2aCarrier({
    agents,
    fetch,
    clock: systemClock,
    ids: systemIds,
    store,
    report: () => {},
    ...more,
  });
}

interface Interference {
  readonly command?: () => Promise<void>;
  readonly receive?: (
    input: Parameters<Runtime["receive"]>[0],
    runtime: Runtime,
  ) => ReturnType<Runtime["receive"]>;
}

/**
 * A mailroom with a data directory. Closing it simulates the end of the process. Its carrier may have a faulty runtime,
 * may never be started, or may be one that stores and sends nothing.
 */
async function openHome(
  text: string,
  url: string,
  carrier: Interference | "not started" | "keeps nothing",
  known?: string,
) {
  const directory = known ?? (await mkdtemp(join(tmpdir(), "mailroom-a2a-")));
  if (known === undefined) onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const store = await openStore({ directory });
  const a2a = carrierTo(url, store);
  const nothing: Carrier = { owns: (name) => a2a.owns(name), rows: () => [] };
  const swarm = await definitionOf(text);
  const home = await Mailroom.open({ swarm, store, carriers: [carrier === "keeps nothing" ? nothing : a2a] });
  const { runtime } = home;
  if (typeof carrier === "object") {
    const { command = runtime.command.bind(runtime), receive } = carrier;
    a2a.start({
      command,
      read: (key, reader) => runtime.read(key, reader),
      receive: (input) => receive?.(input, runtime) ?? runtime.receive(input),
    });
  }
  /** Waits for the first matching entry of a task. */
  const seen = async (taskId: string, isWanted: (entry: Entry) => boolean) => {
    const key = await runtime.find({ role: "user", id: "ann" }, taskId);
    for await (const { entry } of runtime.follow(key ?? "")) if (isWanted(entry)) return entry;
    return undefined;
  };
  return {
    directory,
    home,
    seen,
    /** Waits for the result of the task's first mail. */
    async carried(taskId: string) {
      const sent = await seen(taskId, (entry) => entry.t === "sent" && entry.remote !== undefined);
      const id = sent?.t === "sent" ? sent.message.id : "";
      return seen(taskId, (entry) => entry.t === "carried" && entry.message === id);
    },
    async close() {
      // A carrier that cannot report would wait.
      const closed = a2a.close();
      await home.close({ grace: 0 });
      await store.close();
      await Promise.race([closed, new Promise(setImmediate)]);
    },
    /** Resolves when nothing waits to be sent. */
    async emptied() {
      while ((await store.outbox.counts("a2a")).waiting > 0) await new Promise(setImmediate);
    },
  };
}

const senderOf = (entry: Entry) => (entry.t === "sent" ? entry.message.message.sender.address : undefined);

const inState = (state: string, words: string, id = "lab-task") => ({
  result: {
    task: {
      id,
      contextId: "lab-context",
      status: {
        state,
        message: { messageId: "m", role: "ROLE_AGENT", contextId: "lab-context", parts: [{ text: words }] },
      },
    },
  },
});

describe("an A2A agent as a comm target", () => {
  it("[AGT-PEER-06] receives mail as a message, and its answer arrives as a response", async () => {
    await using lab = await served(ASKING_SWARM);
    await using home = await served(WRITER, config(lab.url));
    const ann = new MailClient(home.url, { token: "user:ann" });
    expect(await ann.postMessage("hello")).toMatchObject({
      status: "completed",
      response: "lab: You said: hello",
    });
  });

  it("[AGT-PEER-07] can ask a question in the same task", async () => {
    await using lab = await served(ASKING_SWARM);
    await using home = await served(WRITER, config(lab.url));
    const ann = new MailClient(home.url, { token: "user:ann" });
    expect(await ann.postMessage("ask")).toMatchObject({ response: "lab: They said: take one" });
  });

  it("[AGT-PEER-11] keeps its context and open task after a restart", async () => {
    const directory = await mkdtemp(join(tmpdir(), "mailroom-a2a-"));
    try {
      await using lab = await served(ASKING_SWARM);
      const first = await served(PASSER_ON, config(lab.url), directory);
      const ann = new MailClient(first.url, { token: "user:ann" });
      const asked = await ann.postMessage("ask", { taskId: "t" });
      expect(asked.response).toContain("Umbrella?");
      await first[Symbol.asyncDispose]();

      await using second = await served(PASSER_ON, config(lab.url), directory);
      const again = new MailClient(second.url, { token: "user:ann" });
      const answered = await again.postMessage("take one", { taskId: "t" });
      expect(answered.response).toBe("lab: They said: take one");
      // A task of its own has a context of its own.
      await again.postMessage("hello", { taskId: "u" });
      const here = new MailClient(lab.url, { token: "user:home" });
      const contexts: string[] = [];
      for await (const task of here.listTasks()) contexts.push(task.task_id);
      expect(contexts).toHaveLength(2);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it("can ask for authorization, and continues the same task afterwards", async () => {
    const lab = await agentWho(({ taskId }) =>
      taskId === "lab-task"
        ? inState("TASK_STATE_COMPLETED", "thank you")
        : inState("TASK_STATE_AUTH_REQUIRED", "sign in first"),
    );
    await using home = await served(PASSER_ON, config(lab.url));
    const ann = new MailClient(home.url, { token: "user:ann" });
    expect((await ann.postMessage("hello", { taskId: "t" })).response).toBe("lab: sign in first");
    expect((await ann.postMessage("done", { taskId: "t" })).response).toBe("lab: thank you");
    expect(lab.heard).toMatchObject([
      { parts: [{ text: "hello" }] },
      { parts: [{ text: "done" }], contextId: "lab-context", taskId: "lab-task" },
    ]);
  });

  it("that did not wait for an answer receives it as a new task in the same context", async () => {
    const lab = await agentWho(({ taskId = "", contextId = "" }) => {
      if (taskId !== "") return { error: { code: -32004, message: "the task has ended" } };
      return contextId === ""
        ? inState("TASK_STATE_AUTH_REQUIRED", "sign in first")
        : inState("TASK_STATE_COMPLETED", "thank you", "another-task");
    });
    await using home = await served(PASSER_ON, config(lab.url));
    const ann = new MailClient(home.url, { token: "user:ann" });
    await ann.postMessage("hello", { taskId: "t" });
    expect((await ann.postMessage("done", { taskId: "t" })).response).toBe("lab: thank you");
    expect(lab.heard.map(({ taskId = "" }) => taskId)).toEqual(["", "lab-task", ""]);
  });

  it("that is still working is polled again after a failed poll, until the agent rejects it", async () => {
    const looks = ["503", "broken", "internal", "done"];
    const url = await agent(async (request, response) => {
      const { id, method, params } = JSON.parse(await text(request));
      const say = (answer: object) => response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
      if (method === "SendMessage")
        return say(inState("TASK_STATE_WORKING", "", params.message.parts[0].text));
      const look = params.id === "forgotten" ? "forgotten" : looks.shift();
      if (look === "503") return response.writeHead(503).end("busy");
      if (look === "broken") return response.destroy();
      if (look === "internal") return say({ error: { code: -32603, message: "out of order" } });
      if (look === "forgotten") return say({ error: { code: -32001, message: "no such task" } });
      return say({ result: inState("TASK_STATE_COMPLETED", "forty-two").result.task });
    });
    const store = await openStore({ path: ":memory:" });
    const a2a = carrierTo(url, store, { pollEvery: 1 });
    const home = await Mailroom.open({ swarm: await definitionOf(PASSER_ON), store, carriers: [a2a] });
    a2a.start(home.runtime);
    expect(await home.user("ann").ask("think")).toMatchObject({ response: "lab: forty-two" });
    expect(looks).toEqual([]);
    expect((await home.user("ann").ask("forgotten")).response).toMatch(/^system: .*no such task/);
    await a2a.close();
    await home.close({ grace: 0 });
    await store.close();
  });

  it("is not called again, nor reported as unreachable, when its answer arrived before a crash", async () => {
    const lab = await agentWho(() => inState("TASK_STATE_COMPLETED", "thank you"));
    const waiting = swarmWith({ when: { from: "desk@lab" }, do: [{ await_message: true }] });
    const first = await openHome(waiting, lab.url, {
      // The process ends before the delivery is settled.
      command: () => new Promise(() => {}),
    });
    await first.home.user("ann").post("hello", { taskId: "t" });
    await first.seen("t", (entry) => entry.t === "sent" && senderOf(entry) === "desk@lab");
    await first.close();
    const second = await openHome(waiting, lab.url, {}, first.directory);
    expect(await second.carried("t")).toMatchObject({ ok: true });
    await second.close();
    expect(lab.heard).toHaveLength(1);
  });

  it("[ENGINE-B-4] receives mail of a task that ended before it was sent, from the next process", async () => {
    const lab = await agentWho(() => inState("TASK_STATE_COMPLETED", "thank you"));
    const parting = swarmWith({
      when: { from_type: "user" },
      do: [
        { send_request: { target: "desk@lab", subject: "Ask", body: "{{body}}" } },
        { task_complete: "asked" },
      ],
    });
    const first = await openHome(parting, lab.url, "not started");
    expect(await first.home.user("ann").ask("hello", { taskId: "t" })).toMatchObject({ response: "asked" });
    await first.close();
    expect(lab.heard).toEqual([]);
    const second = await openHome(parting, lab.url, {}, first.directory);
    await second.emptied();
    expect(lab.heard).toMatchObject([{ parts: [{ text: "hello" }] }]);
    expect(await second.carried("t")).toMatchObject({ ok: true });
    await second.close();
  });

  it("receives mail that has no outbox row", async () => {
    const lab = await agentWho(() => inState("TASK_STATE_COMPLETED", "thank you"));
    const first = await openHome(PASSER_ON, lab.url, "keeps nothing");
    await first.home.user("ann").post("hello", { taskId: "t" });
    await first.seen("t", (entry) => entry.t === "sent" && entry.remote !== undefined);
    await first.close();
    const second = await openHome(PASSER_ON, lab.url, {}, first.directory);
    expect(await second.carried("t")).toMatchObject({ ok: true });
    expect(lab.heard).toHaveLength(1);
    await second.close();
  });

  it("does not receive mail of a cancelled task", async () => {
    const lab = await agentWho(() => inState("TASK_STATE_COMPLETED", "thank you"));
    const first = await openHome(PASSER_ON, lab.url, "not started");
    const { task } = await first.home.user("ann").post("hello", { taskId: "t" });
    await first.seen("t", (entry) => entry.t === "sent" && entry.remote !== undefined);
    await task.cancel();
    await first.close();
    const second = await openHome(PASSER_ON, lab.url, {}, first.directory);
    await second.emptied();
    expect(lab.heard).toEqual([]);
    await second.close();
  });

  it("that is briefly unreachable receives its mail once when it is back", async () => {
    let refusals = 2;
    const lab = await agentWho(() => inState("TASK_STATE_COMPLETED", "thank you"), {
      // First its card cannot be read, then it is busy.
      card: () => (refusals === 2 && refusals-- > 0 ? 503 : 200),
      rpc: () => (refusals-- > 0 ? 429 : 200),
    });
    await using home = await served(PASSER_ON, config(lab.url));
    const ann = new MailClient(home.url, { token: "user:ann" });
    expect((await ann.postMessage("hello")).response).toBe("lab: thank you");
    expect([lab.heard.length, refusals]).toEqual([1, -1]);
  });

  it("has its answer stored when the store recovers, and is not called again", async () => {
    const lab = await agentWho(() => inState("TASK_STATE_COMPLETED", "thank you"));
    let refusals = 2;
    const { home, close } = await openHome(PASSER_ON, lab.url, {
      receive: (input, runtime) =>
        refusals-- > 0 ? Promise.reject(new MailroomError("overloaded", "later")) : runtime.receive(input),
    });
    expect((await home.user("ann").ask("hello")).response).toBe("lab: thank you");
    expect(lab.heard).toHaveLength(1);
    await close();
  });

  describe("[AGT-PEER-08] that fails is reported to the sender, with the reason", () => {
    /** The notice that the sender received, and no other effect. */
    async function told(url: string, body: string): Promise<string> {
      await using home = await served(WRITER, config(url, 'delivery_timeout = "1s"'));
      const ann = new MailClient(home.url, { token: "user:ann" });
      const { status, response } = await ann.postMessage(body, { taskId: "t" });
      expect(status).toBe("completed");
      const { events = [] } = await ann.getTask("t");
      const reports = events.filter(
        ({ event, data }) => event === "new_message" && JSON.stringify(data).includes("::router_error::"),
      );
      expect(reports).toHaveLength(1);
      return response;
    }

    it("when it cannot be reached", async () => {
      const url = await listening(() => {});
      await new Promise((resolve) => servers.pop()?.close(resolve));
      expect(await told(url, "hello")).toMatch(
        /^system: Your message 'Ask' to swarm 'lab' was not delivered: the A2A agent 'lab' did not answer: /,
      );
    });

    it("when its task fails", async () => {
      await using lab = await served(ASKING_SWARM);
      expect(await told(lab.url, "fail")).toMatch(/^system: .*was not delivered: .*on purpose/);
    });

    it("when its card is valid and its answer is not", async () => {
      let calls = 0;
      const url = await agent((_request, response) => {
        calls++;
        response.writeHead(500).end("broken");
      });
      expect(await told(url, "hello")).toMatch(/^system: .*did not answer: .*500/);
      // Not repeated: an agent that ignores messageId would do its work twice.
      expect(calls).toBe(1);
    });
  });

  it("[AGT-PEER-09] receives the token only at its configured origin, regardless of its card", async () => {
    const seen: (string | undefined)[] = [];
    const thief = await listening((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(500).end();
    });
    const place = await listening((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(cardAt(`${thief}/rpc`));
    });
    await using home = await served(WRITER, config(place));
    await new MailClient(home.url, { token: "user:ann" }).postMessage("hello");
    expect(seen).toEqual([undefined]);
  });

  it("must have a free alias and a token that is set", async () => {
    const url = "https://lab.example.com";
    await expect(served(WRITER, `[a2a.agents]\nhome = { url = "${url}" }\n`)).rejects.toThrow(
      "a2a.agents.home",
    );
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the file contains this text
    const token = "${MAILROOM_TEST_NOT_SET}";
    await expect(
      served(WRITER, `[a2a.agents]\nlab = { url = "${url}", token = "${token}" }\n`),
    ).rejects.toThrow("MAILROOM_TEST_NOT_SET");
  });
});
