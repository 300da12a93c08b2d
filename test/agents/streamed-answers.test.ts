/** Answers that are shown while a model writes them. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WrittenTexts } from "../../src/base/index.js";
import { tokenData } from "../../src/extension/index.js";
import type { ModelAgentOptions, TextDelta } from "../../src/index.js";
import { type Behaviour, ModelServer } from "./kit/model-server.js";
import { ANSWER, atFirst, type Office, openOffice, reply, sensible, ways } from "./kit/swarm.js";

let server: ModelServer;
let office: Office | undefined;

beforeEach(async () => {
  server = await ModelServer.start(sensible);
});

afterEach(async () => {
  await office?.mailroom.close({ grace: 0 });
  office = undefined;
  await server.close();
  expect(server.complaints).toEqual([]);
});

const CHAT = { llm: "openai/gpt-test", toolFormat: "completions", streamTokens: true } as const;
/** Every character that is special in JSON, and a pair of surrogates in the middle. */
const STRANGE = 'A "quote", a \\ and a \n line: 😀😀😀 \u0007 {"finish_message": "no"} ]}, ok';

async function open(options: Omit<ModelAgentOptions, "system">): Promise<Office["mailroom"]> {
  office = await openOffice(server, options);
  return office.mailroom;
}

/** The texts as a client knows them after each piece. */
function grow(deltas: readonly TextDelta[]): WrittenTexts {
  const texts = new WrittenTexts();
  for (const delta of deltas) texts.add(tokenData({ key: "k", ...delta }));
  return texts;
}

describe.each(ways(() => server).filter(({ name }) => name.endsWith("streamed")))("$name", (way) => {
  it("[AGT-STREAM-01] shows the answers to agents and to the user while they are written", async () => {
    server.model = async (request, count) => {
      const said = await sensible(request, count);
      return "calls" in said && said.calls?.[0]?.name === "task_complete" ? reply.finish(STRANGE) : said;
    };
    const deltas: TextDelta[] = [];
    const mailroom = await open(way.options);
    const answer = await mailroom.user("ann").ask("?", { onDelta: (delta) => deltas.push(delta) });
    expect(answer).toMatchObject({ status: "completed", response: STRANGE });
    expect(grow(deltas).all).toEqual([
      { agent: "clerk", text: "Let me see." },
      { agent: "clerk", tool: "send_response", text: "7 bottles and 2 reams" },
      { agent: "head", tool: "task_complete", text: STRANGE },
    ]);
    for (const { delta } of deltas) expect(Buffer.from(delta).toString()).toBe(delta);
    // Requests and arguments of actions are no answers.
    expect(JSON.stringify(deltas)).not.toMatch(/What is in stock|Question|ink/);
  });
});

describe("[AGT-STREAM-02] an answer that begins again", () => {
  const LONG = "There are seven bottles of ink and two reams of paper, as far as we know.";

  it.each(
    ways(() => server).filter(
      ({ name }) => /Chat|Responses|Anthropic|compatible.*/.test(name) && name.endsWith("streamed"),
    ),
  )("is marked when the connection breaks in the middle ($name)", async ({ options }) => {
    let finishing = 0;
    server.model = async (request, count) => {
      const said = await sensible(request, count);
      if (!("calls" in said) || said.calls?.[0]?.name !== "task_complete") return said;
      finishing++;
      return finishing > 1
        ? reply.finish("Short.")
        : { cutAfter: cutsOf(options), reply: reply.finish(LONG) };
    };
    const deltas: TextDelta[] = [];
    const mailroom = await open(options);
    const answer = await mailroom.user("ann").ask("?", { onDelta: (delta) => deltas.push(delta) });
    expect(answer).toMatchObject({ status: "completed", response: "Short." });
    const ofHead = deltas.filter(({ agent }) => agent === "head");
    const reset = ofHead.findIndex((delta) => delta.reset === true);
    expect(ofHead[0]).toMatchObject({ attempt: 1, offset: 0, call: { name: "task_complete" } });
    const before = ofHead
      .slice(0, reset)
      .map(({ delta }) => delta)
      .join("");
    expect(before).not.toBe("");
    expect(LONG.startsWith(before)).toBe(true);
    expect(ofHead[reset]).toMatchObject({ attempt: 2, delta: "" });
    expect(ofHead.slice(reset + 1).every(({ attempt }) => attempt === 2)).toBe(true);
    expect(grow(ofHead).all).toEqual([{ agent: "head", tool: "task_complete", text: "Short." }]);
  });

  /** Frames up to a piece of the arguments. */
  function cutsOf({ llm, toolFormat }: Omit<ModelAgentOptions, "system">): number {
    if (llm === "openai/gpt-test" && toolFormat === "responses") return 4;
    return String(llm).startsWith("anthropic") ? 4 : 3;
  }

  it("is marked when another model is called instead", async () => {
    server.model = (request) =>
      request.body.model === "first"
        ? { cutAfter: 3, reply: reply.finish(LONG) }
        : reply.finish("From the second.");
    const deltas: TextDelta[] = [];
    const mailroom = await open({ ...CHAT, llm: ["openai/first", "openai/second"], maxRetries: 0 });
    const answer = await mailroom.user("ann").ask("?", { onDelta: (delta) => deltas.push(delta) });
    expect(answer.response).toBe("From the second.");
    expect(deltas[0]).toMatchObject({ attempt: 1 });
    expect(deltas.map(({ reset }) => reset)).toContain(true);
    expect(grow(deltas).all).toEqual([{ agent: "head", tool: "task_complete", text: "From the second." }]);
  });

  it("is marked when its arguments are corrected", async () => {
    server.model = (_, count) =>
      count === 1
        ? { calls: [{ name: "task_complete", raw: '{"finish_message": "first", oops' }] }
        : reply.finish("second");
    const deltas: TextDelta[] = [];
    const mailroom = await open(CHAT);
    const answer = await mailroom.user("ann").ask("?", { onDelta: (delta) => deltas.push(delta) });
    expect(answer.response).toBe("second");
    expect(deltas.map(({ delta, reset }) => [delta, reset]).join("|")).toContain("first");
    expect(grow(deltas).all).toMatchObject([{ text: "second" }]);
  });

  it("leaves nothing when its turn fails", async () => {
    server.model = () => ({ cutAfter: 3, reply: reply.finish(LONG) });
    const deltas: TextDelta[] = [];
    const mailroom = await open({ ...CHAT, maxRetries: 0 });
    const answer = await mailroom.user("ann").ask("?", { onDelta: (delta) => deltas.push(delta) });
    expect(answer.status).toBe("failed");
    expect(deltas.length).toBeGreaterThan(0);
    expect(grow(deltas).all).toEqual([]);
  });
});

/** Writes the first half of an answer, and the rest when told. */
function halfway(text: string): { respond: Behaviour; rest: () => void } {
  let rest = (): void => {};
  const told = new Promise<void>((resolve) => {
    rest = resolve;
  });
  return { respond: { ...reply.finish(text), pauseAfter: 3, until: told }, rest };
}

describe("[AGT-STREAM-03] an unfinished answer", () => {
  it("is over when its task is cancelled", async () => {
    const { respond, rest } = halfway("This takes long, very long.");
    server.model = () => respond;
    const mailroom = await open(CHAT);
    const ann = mailroom.user("ann");
    const { task, outcome } = await ann.post("?");
    const deltas: TextDelta[] = [];
    let cancelled: Promise<void> | undefined;
    for await (const _ of task.events({
      live: true,
      onDelta: (delta) => {
        deltas.push(delta);
        cancelled ??= task.cancel();
      },
    })) {
      if ((await task.status()) === "cancelled") break;
    }
    await cancelled;
    rest();
    expect((await outcome).status).toBe("cancelled");
    expect(grow(deltas).all).toEqual([]);
  });

  it("is shown from its beginning to those who come later, and once", async () => {
    const text = "The first half of it, and then the second half of it.";
    const { respond, rest } = halfway(text);
    server.model = () => respond;
    const mailroom = await open(CHAT);
    const ann = mailroom.user("ann");
    const { task, outcome } = await ann.post("?");
    await new Promise<void>((resolve) => {
      const subscription = mailroom.runtime.watchText(task.key, () => {
        subscription.close();
        resolve();
      });
    });
    const deltas: TextDelta[] = [];
    const events = task.events({ live: "round", onDelta: (delta) => deltas.push(delta) });
    const first = await events.next();
    expect(first.done).toBe(false);
    expect(deltas[0]).toMatchObject({ offset: 0, call: { name: "task_complete" } });
    rest();
    for await (const _ of events);
    expect((await outcome).message.message.body).toBe(text);
    expect(deltas.map(({ delta }) => delta).join("")).toBe(text);
    // A finished answer is in the events only.
    const late: TextDelta[] = [];
    for await (const _ of task.events({ live: "round", onDelta: (delta) => late.push(delta) }));
    expect(late).toEqual([]);
  });

  it("is seen only by the owner of its task", async () => {
    server.model = ({ newest }) =>
      reply.finish(newest.includes("ann asks") ? "This is Ann's." : "This is Bob's.");
    const mailroom = await open(CHAT);
    const seen = { ann: "", bob: "" };
    const ask = (user: "ann" | "bob") =>
      mailroom.user(user).ask(`${user} asks`, {
        taskId: "t",
        onDelta: ({ delta }) => {
          seen[user] += delta;
        },
      });
    await Promise.all([ask("ann"), ask("bob")]);
    expect(seen).toEqual({ ann: "This is Ann's.", bob: "This is Bob's." });
  });
});

it("[AGT-STREAM-04] without stream_tokens nothing is streamed", async () => {
  server.model = atFirst(() => undefined);
  const deltas: TextDelta[] = [];
  const mailroom = await open({ ...CHAT, streamTokens: false });
  const answer = await mailroom.user("ann").ask("?", { onDelta: (delta) => deltas.push(delta) });
  expect(answer.response).toBe(ANSWER);
  expect(deltas).toEqual([]);
});
