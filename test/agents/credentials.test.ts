/** A model agent without credentials pauses its task; the task does not fail (decision H1). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  defineAgent,
  defineSwarm,
  type JournalEntry,
  Mailroom,
  type ModelAgentOptions,
  type TaskEvent,
  TurnHeldError,
} from "../../src/index.js";
import { ModelServer } from "./kit/model-server.js";
import { ANSWER, openOffice, sensible } from "./kit/swarm.js";

const CHAT = { llm: "openai/gpt-test", toolFormat: "completions" } as const;
const PROXIED = { ...CHAT, useProxy: true } as const;

let models: ModelServer;
let data: string;
let mailroom: Mailroom | undefined;

beforeEach(async () => {
  models = await ModelServer.start(sensible);
  data = mkdtempSync(join(tmpdir(), "mailroom-credentials-"));
});
afterEach(async () => {
  await mailroom?.close({ grace: 0 });
  mailroom = undefined;
  await models.close();
  rmSync(data, { recursive: true, force: true });
  expect(models.complaints).toEqual([]);
});

/** Behaves like another process on the same data. */
async function restart(
  options: Omit<ModelAgentOptions, "system">,
  env: Record<string, string>,
): Promise<Mailroom> {
  await mailroom?.close({ grace: 0 });
  mailroom = (await openOffice(models, options, { data, env })).mailroom;
  return mailroom;
}

/** Reads events until a round has ended with this status. */
async function ended(room: Mailroom, status: "completed" | "paused", after?: string): Promise<TaskEvent> {
  const task = await room.user("ann").requireTask("t");
  for await (const event of task.events({ live: true, ...(after !== undefined && { after }) })) {
    if (event.data.status === status) return event;
  }
  throw new Error("the event stream ended");
}

async function journal(room: Mailroom): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = [];
  for await (const { entry } of (await room.user("ann").requireTask("t")).journal()) entries.push(entry);
  return entries;
}

describe("a key that is not set", () => {
  const without = { OPENAI_API_KEY: "" };
  const withKey = { OPENAI_API_KEY: "sk-found" };

  it("[AGT-MODEL-20] pauses the task and names the variable; the task resumes at the next start with the key", async () => {
    const first = await restart(CHAT, without);
    const held = await first.user("ann").ask("How are we?", { taskId: "t" });
    expect(held).toMatchObject({ status: "paused", reason: "credentials", breakpoints: [] });
    expect(held.response).toContain("set OPENAI_API_KEY");
    const record = await (await first.user("ann").requireTask("t")).record();
    expect(record).toMatchObject({ status: "paused", reason: "credentials" });
    expect(models.requests).toHaveLength(0);

    const second = await restart(CHAT, withKey);
    expect((await ended(second, "completed")).data.response).toBe(ANSWER);
    expect(models.requests[0]?.headers.authorization).toBe("Bearer sk-found");
    // The held turn did not dequeue the message, so the history has it once.
    const said = models.requests.at(-1)?.said.filter(({ text }) => text.includes("How are we?"));
    expect(said).toHaveLength(1);
  });

  it("pauses the task again while the key is missing, and does not fail it", async () => {
    await (await restart(CHAT, without)).user("ann").ask("How are we?", { taskId: "t" });
    const second = await restart(CHAT, without);
    const task = await second.user("ann").requireTask("t");
    const [first] = (await journal(second)).flatMap((entry, at) => (entry.t === "paused" ? [at + 1] : []));
    await ended(second, "paused", String(first));
    expect((await task.record()).status).toBe("paused");
    expect((await journal(second)).filter(({ t }) => t === "failed" || t === "turn_failed")).toEqual([]);
  });

  it("the owner can cancel the paused task", async () => {
    const first = await restart(CHAT, without);
    await first.user("ann").ask("How are we?", { taskId: "t" });
    await (await first.user("ann").requireTask("t")).cancel();
    const second = await restart(CHAT, withKey);
    const ok = await second.user("ann").ask("Another one", { taskId: "u" });
    expect(ok.status).toBe("completed");
    expect((await (await second.user("ann").requireTask("t")).record()).status).toBe("cancelled");
  });
});

describe("a custom agent that holds its turn", () => {
  it("runs again with the owner's next message, and has all mail", async () => {
    let ready = false;
    const room = await Mailroom.open({
      data: false,
      onProblem: () => {},
      swarm: defineSwarm({
        name: "office",
        agents: [
          defineAgent({
            name: "desk",
            enableEntrypoint: true,
            canCompleteTasks: true,
            commTargets: ["clerk"],
            run: (mail) => {
              if (mail.type === "response") mail.complete(mail.body);
              else mail.request("clerk", "Question", mail.body);
            },
          }),
          defineAgent({
            name: "clerk",
            commTargets: ["desk"],
            run: (mail) => {
              if (!ready) throw new TurnHeldError("credentials", "the safe is locked");
              mail.reply(`${mail.body}: yes`);
            },
          }),
        ],
      }),
    });
    mailroom = room;
    const ann = room.user("ann");
    const held = await ann.ask("first", { taskId: "t" });
    expect(held).toMatchObject({
      status: "paused",
      reason: "credentials",
      response: "Agent 'clerk' cannot continue: the safe is locked",
    });
    // No breakpoint call is open.
    const task = await ann.requireTask("t");
    await expect(task.answer("open it")).rejects.toMatchObject({ code: "not_paused" });
    ready = true;
    expect(await ann.ask("second", { taskId: "t" })).toMatchObject({ status: "completed" });
    const turns = (await journal(room)).filter((entry) => entry.t === "turn" && entry.agent === "clerk");
    expect(JSON.stringify(turns)).toContain("first: yes");
  });
});

describe("the caller's token for the proxy", () => {
  const proxy = () => ({ LITELLM_PROXY_API_BASE: models.url });

  /** A running task whose token is lost with its process. */
  async function interrupted(): Promise<void> {
    const first = await restart(PROXIED, proxy());
    const asked = new Promise<void>((resolve) => {
      models.model = () => {
        resolve();
        return { silent: true };
      };
    });
    await first.user("ann", { params: { user_token: "ann-s3cret" } }).post("How are we?", { taskId: "t" });
    await asked;
    await first.close({ grace: 0 });
    models.model = sensible;
  }

  it("[AGT-MODEL-21] is lost with the process; the task waits until its owner calls again", async () => {
    await interrupted();
    const second = await restart(PROXIED, proxy());
    const held = await ended(second, "paused");
    expect(held.data.extra_data).toMatchObject({ reason: "credentials" });
    expect(held.data.response).toContain("LITELLM_PROXY_API_KEY");
    // Any call of ann's with a token resumes the task; another user's does not.
    second.user("bob", { params: { user_token: "bob-s3cret" } });
    second.user("ann", { params: { user_token: "ann-again" } });
    expect((await ended(second, "completed")).data.response).toBe(ANSWER);
    const [, ...later] = models.requests.map(({ headers }) => headers.authorization);
    expect(new Set(later)).toEqual(new Set(["Bearer ann-again"]));
    expect(JSON.stringify(await journal(second))).not.toMatch(/s3cret|ann-again/);
  });

  it("is replaced by the proxy's own key", async () => {
    await interrupted();
    const second = await restart(PROXIED, { ...proxy(), LITELLM_PROXY_API_KEY: "proxy-key" });
    expect((await ended(second, "completed")).data.response).toBe(ANSWER);
    expect(models.requests.at(-1)?.headers.authorization).toBe("Bearer proxy-key");
  });
});
