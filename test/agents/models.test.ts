/** Model agents, end to end: whole tasks over real HTTP against a server with the providers' wire formats. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Answer, JournalEntry, Mailroom, Task } from "../../src/index.js";
import { ModelServer } from "./kit/model-server.js";
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

async function ask(
  options: Parameters<typeof openOffice>[1],
  more?: Parameters<typeof openOffice>[2],
): Promise<Answer> {
  office = await openOffice(server, options, more);
  return office.mailroom.user("ann").ask("How are we?", { taskId: "t" });
}

async function taskOf({ mailroom }: { mailroom: Mailroom }): Promise<Task> {
  return mailroom.user("ann").requireTask("t");
}

async function turnsOf(current: Office | undefined): Promise<Extract<JournalEntry, { t: "turn" }>[]> {
  if (current === undefined) throw new Error("the swarm was not loaded");
  const turns: Extract<JournalEntry, { t: "turn" }>[] = [];
  for await (const { entry } of (await taskOf(current)).journal()) if (entry.t === "turn") turns.push(entry);
  return turns;
}

describe.each(ways(() => server))("$name", (way) => {
  it("[AGT-MODEL-01] completes a task from a user's question through parallel calls to its answer", async () => {
    const answer = await ask(way.options);
    expect(answer).toMatchObject({ status: "completed", response: ANSWER });
    expect(office?.lookedUp).toEqual(["ink", "paper"]);
    const [first] = server.requests;
    expect(first?.tools).toContain("task_complete");
    expect(first?.toolChoice).toBe("required");
    expect(first?.system).toContain("You lead the office.");
    expect(first?.system).toContain("clerk: Knows the stock (can use: look_up)");
    const [turn] = await turnsOf(office);
    expect(turn?.usage).toMatchObject({ inputTokens: 1_500, outputTokens: 50 });
  });

  it("[AGT-MODEL-02] continues in a second round with its whole history", async () => {
    await ask(way.options);
    const again = await office?.mailroom.user("ann").ask("And now?", { taskId: "t" });
    expect(again?.status).toBe("completed");
    const last = server.requests.at(-1);
    expect(last?.said.filter(({ text }) => text.includes("How are we?"))).toHaveLength(1);
  });

  it.each([429, 529])("[AGT-MODEL-03] retries after status %i", async (status) => {
    server.model = atFirst((_, count) =>
      count <= 2 ? { status, message: "not now", headers: { "retry-after-ms": "1" } } : undefined,
    );
    expect(await ask(way.options)).toMatchObject({ status: "completed", response: ANSWER });
    expect(server.requests).toHaveLength(6);
  });

  it("lets the model correct a call with malformed arguments", async () => {
    // In Google's answers and Anthropic's unstreamed ones arguments are JSON, so they cannot be malformed.
    const malformed = { calls: [{ name: "send_request", raw: '{"target": "clerk", "subj' }] };
    server.model = atFirst((_, count) => (count === 1 ? malformed : undefined));
    expect(await ask(way.options)).toMatchObject({ status: "completed" });
    const mending = server.requests[1]?.newest;
    expect(mending).toMatch(
      /^(ERROR: the arguments are not the JSON text|\n<incoming_message>[\s\S]*tool_call_error)/,
    );
  });

  it("[AGT-MODEL-04] a call that stays malformed becomes an error result, and the task continues", async () => {
    const malformed = {
      calls: [
        { name: "task_complete", raw: "[1, 2" },
        { name: "look_up", args: {} },
      ],
    };
    server.model = atFirst((_, count) => (count <= 3 ? malformed : undefined));
    expect(await ask(way.options)).toMatchObject({ status: "completed", response: ANSWER });
  });

  it("[AGT-MODEL-05] notifies the agent of unknown tools and invalid arguments", async () => {
    server.model = atFirst(({ agent, said }) => {
      if (agent !== "clerk" || said.some(({ role }) => role === "assistant")) return undefined;
      return {
        calls: [
          { name: "fly", args: {} },
          { name: "look_up", args: { thing: 1 } },
        ],
      };
    });
    await ask(way.options);
    const told = server.requests.flatMap(({ said }) => said.flatMap(({ results }) => results));
    expect(told.map(({ content }) => content)).toEqual(
      expect.arrayContaining([
        expect.stringContaining("ERROR: unknown tool or action 'fly'"),
        expect.stringContaining("ERROR: invalid arguments: item: is required"),
      ]),
    );
  });

  it("[AGT-MODEL-06] delivers a refusal as the agent's answer to the agent that asked", async () => {
    server.model = atFirst(({ agent }) =>
      agent === "clerk" ? { refusal: "I cannot help with that." } : undefined,
    );
    const answer = await ask(way.options);
    // The protocol of compatible servers has no refusals: an answer without text fails the turn.
    if (way.name.includes("compatible")) expect(server.requests.at(-1)?.newest).toContain("agent_error");
    else
      expect(answer).toMatchObject({ status: "completed", response: "There are I cannot help with that.." });
  });

  it("[AGT-MODEL-07] shortens the history when the provider rejects it as too long, and keeps calls with their results", async () => {
    const long = "x".repeat(3_000);
    server.model = ({ agent, said, body }) => {
      if (JSON.stringify(body.messages ?? body.input ?? body.contents).length > 12_000) {
        return { status: 400, message: "prompt is too long: this exceeds the maximum context length" };
      }
      if (agent === "") return { text: "The clerk was asked often and always knew." };
      if (agent === "clerk") return reply.respond("head", long);
      return said.at(-1)?.text.includes("<body>Round") === true
        ? reply.ask("clerk", `Question ${said.length}`)
        : reply.finish("Enough.");
    };
    office = await openOffice(server, way.options);
    const ann = office.mailroom.user("ann");
    for (const round of [1, 2, 3, 4]) {
      expect(await ann.ask(`Round ${round}`, { taskId: "t" })).toMatchObject({ response: "Enough." });
    }
    const compacted: JournalEntry[] = [];
    for await (const { entry } of (await taskOf(office)).journal())
      if (entry.t === "compacted") compacted.push(entry);
    expect(compacted).not.toHaveLength(0);
    expect(compacted[0]).toMatchObject({ summary: "The clerk was asked often and always knew." });
  });
});
