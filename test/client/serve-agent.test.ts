/** Tests agents in other processes against a real server. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import { deferred } from "../../src/base/index.js";
import { type AgentMail, type ServeAgentOptions, serveAgent } from "../../src/client/index.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { BridgeHarness } from "../map/bridge-harness.js";

let house: BridgeHarness;
const errors: unknown[] = [];

beforeEach(async () => {
  house = await BridgeHarness.start();
  errors.length = 0;
});

afterEach(async () => {
  await house.stop();
  expect(house.problems).toEqual([]);
});

const serve = (run: ServeAgentOptions["run"], options: Partial<ServeAgentOptions> = {}) =>
  serveAgent(house.url, {
    token: "member:coder",
    name: "coder",
    run,
    onError: (error) => errors.push(error),
    ...options,
  });

const ask = async (body: string) => {
  const { status, message } = await (await house.mailroom.user("ann").post(body)).outcome;
  return { status, answer: message.message.body };
};

it("a returned text is the answer, and verbs of the mail take effect together", async () => {
  await using _ = await serve(async (mail) => {
    expect(mail).toMatchObject({ from: "boss", type: "request", subject: "work", attempt: 1 });
    expect(mail.tools).toContain("send_response");
    if (mail.body === "verbs") return mail.reply("by a verb");
    return `did ${mail.body}`;
  });
  expect(await ask("a job")).toEqual({ status: "completed", answer: "coder says: did a job" });
  expect(await ask("verbs")).toEqual({ status: "completed", answer: "coder says: by a verb" });
});

it("an entrypoint in another process answers the user", async () => {
  await house.stop();
  const greeter = defineAgent({
    name: "greeter",
    enableEntrypoint: true,
    canCompleteTasks: true,
    remote: true,
  });
  house = await BridgeHarness.start({ swarm: defineSwarm({ name: "lobby", agents: [greeter] }) });
  const greeting = (body: string) => `Hello, ${body}!`;
  await using _ = await serve(
    (mail) => (mail.body === "moon" ? greeting(mail.body) : mail.reply(greeting(mail.body))),
    { token: "member:greeter", name: "greeter" },
  );
  expect(await ask("world")).toEqual({ status: "completed", answer: "Hello, world!" });
  expect(await ask("moon")).toEqual({ status: "completed", answer: "Hello, moon!" });
});

it("a run that throws, returns nothing or takes too long fails its turn, and the agent that asked is notified", async () => {
  const never = new Promise<string>(() => {});
  let aborted: AbortSignal | undefined;
  await using _ = await serve(
    (mail: AgentMail) => {
      if (mail.body === "throw") throw new Error("out of ink");
      if (mail.body === "nothing") return;
      if (mail.body === "never") {
        aborted = mail.signal;
        return never;
      }
      return mail.body;
    },
    { runTimeout: 200 },
  );
  // The boss reports the mail that it receives; each failure is one notice of the system.
  for (const [body, words] of [
    ["throw", "out of ink"],
    ["nothing", "returned no text"],
    ["never", "did not return within"],
  ] as const) {
    const posted = await house.mailroom.user("ann").post(body, { taskId: body });
    const failed = await (async () => {
      for await (const { entry } of posted.task.journal({ live: true })) {
        if (entry.t === "turn_failed") return entry;
      }
      return undefined;
    })();
    expect(failed).toMatchObject({ agent: "coder", code: "agent_error" });
    expect(failed?.message).toContain(words);
  }
  expect(aborted?.aborted).toBe(true);
  expect(errors).toHaveLength(3);
  expect(await ask("still here")).toMatchObject({ answer: "coder says: still here" });
});

it("a wrong token, another caller's token and an unknown agent are refused with the reason", async () => {
  const refused = (token: string, name: string, words: string) =>
    expect(serve(() => "", { token, name })).rejects.toMatchObject({
      code: "refused",
      message: expect.stringContaining(words),
    });
  await refused("nonsense", "coder", "map/connect failed with error 1001");
  await refused("user:ann", "coder", "the token belongs to user:ann");
  await refused("member:quiet", "quiet", "no remote agent 'quiet'");
  await refused("member:stranger", "stranger", "no remote agent 'stranger'");
});

it("two processes with the same name: the later one serves, and the earlier one ends", async () => {
  const first = await serve((mail) => `first ${mail.body}`);
  expect(await ask("1")).toMatchObject({ answer: "coder says: first 1" });
  const second = await serve((mail) => `second ${mail.body}`);
  await expect(first.finished).rejects.toMatchObject({ code: "replaced" });
  expect(first.state).toMatchObject({ status: "closed", error: { code: "replaced" } });
  expect(await ask("2")).toMatchObject({ answer: "coder says: second 2" });
  expect(second.state).toMatchObject({ status: "open" });
  await second.close();
  await second.finished;
});

it("as many messages as allowed are answered at once, and the others wait", async () => {
  let received = 0;
  let running = 0;
  const gate = deferred<void>();
  await using _ = await serve(
    async (mail) => {
      running++;
      await gate.promise;
      return mail.body;
    },
    {
      concurrency: 3,
      open: (url) => {
        const socket = new WebSocket(url);
        socket.on("message", (data) => {
          if (String(data).includes('"map/message"')) received++;
        });
        return socket;
      },
    },
  );
  const asked = Array.from({ length: 100 }, (_, n) => ask(`job ${n}`));
  // The server hands out as many as it does without an answer.
  await expect.poll(() => received).toBe(64);
  expect(running).toBe(3);
  gate.resolve();
  const answers = await Promise.all(asked);
  expect(answers.map(({ answer }) => answer)).toEqual(answers.map((_, n) => `coder says: job ${n}`));
});

it("closing returns unanswered mail, which the next process gets", async () => {
  const taken = deferred<AgentMail>();
  const first = await serve((mail) => {
    taken.resolve(mail);
    return new Promise<string>(() => {});
  });
  const answer = ask("a job");
  const mail = await taken.promise;
  await first.close();
  expect(mail.signal.aborted).toBe(true);
  await using _ = await serve(({ body, attempt }) => `${body}, attempt ${attempt}`);
  expect(await answer).toMatchObject({ answer: "coder says: a job, attempt 2" });
  expect(errors).toEqual([]);
});

it("a result that is known when the connection breaks is sent over the next one, without another run", async () => {
  const sockets: WebSocket[] = [];
  let runs = 0;
  const resume = deferred<void>();
  const started = deferred<void>();
  await using agent = await serve(
    async (mail) => {
      runs++;
      started.resolve();
      await resume.promise;
      return `${mail.body} after ${runs} run`;
    },
    {
      open: (url) => {
        const socket = new WebSocket(url);
        sockets.push(socket);
        return socket;
      },
    },
  );
  const answer = ask("long work");
  await started.promise;
  sockets.at(-1)?.terminate();
  await expect.poll(() => sockets.length).toBe(2);
  await expect.poll(() => agent.state.status).toBe("open");
  resume.resolve();
  expect(await answer).toMatchObject({ answer: "coder says: long work after 1 run" });
  expect(runs).toBe(1);
});

it("an answer above the server's limit for a frame fails its turn, and other answers are not affected", async () => {
  const asked: string[] = [];
  const begun = deferred<void>();
  await using _ = await serve(async ({ body }) => {
    asked.push(body);
    if (body !== "large") {
      begun.resolve();
      return "small";
    }
    await begun.promise;
    return "x".repeat(1_100_000);
  });
  const large = ask("large");
  expect(await ask("small")).toEqual({ status: "completed", answer: "coder says: small" });
  // The agent that asked is notified of the failure, so its task ends.
  expect((await large).status).toBe("completed");
  expect(asked.filter((body) => body === "large")).toHaveLength(1);
  expect(errors.map(String)).toEqual([expect.stringContaining("larger than the server accepts")]);
});
