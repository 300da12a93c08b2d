/** Runs the demonstration swarm and the bundled agents on the real runtime. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { demoSwarm, exampleAgent } from "../../src/demo/index.js";
import { defineSwarm, loadSwarmsFromText, Mailroom } from "../../src/index.js";

/** A Monday. */
const now = () => new Date("2026-03-02T10:00:00Z");

async function open(swarm: Parameters<typeof Mailroom.open>[0]["swarm"]): Promise<Mailroom> {
  return Mailroom.open({ swarm, data: false });
}

describe("the demonstration swarm", () => {
  let mailroom: Mailroom;
  beforeAll(async () => {
    mailroom = await open(demoSwarm({ now }));
  });
  afterAll(() => mailroom.close());

  const forecast = (place: string, date: string) =>
    `The forecast for ${place} on ${date}: [^.]*\\(simulated data\\)\\.`;

  it.each([
    [
      "What will the weather be in Kyoto tomorrow, and what is 15% of 340?",
      `^${forecast("Kyoto", "2026-03-03")} 15% of 340 = 51\\.$`,
    ],
    [
      "What's 2 * (3 + 4)^2? And will it rain in São Paulo in 3 days?",
      `^${forecast("São Paulo", "2026-03-05")} 2 \\* .* = 98\\.$`,
    ],
    ["weather in new york city on friday?", `^${forecast("new york city", "2026-03-06")}$`],
    ["Do I need an umbrella at Lake Tahoe on 2026-03-05?", `^${forecast("Lake Tahoe", "2026-03-05")}$`],
    ["What is 1,200 divided by 7?", "^1,200 divided by 7 = 171\\.428571429\\.$"],
    ["sqrt(16)", "^sqrt\\(16\\) = 4\\.$"],
    ["What is 7 / 0?", "could not calculate 7 / 0: division by zero"],
    ["What is the weather like?", "I need a place"],
    ["Forecast for Oslo on 2026-05-05, please", "could not get a forecast: .*14 days ahead"],
    ["Calculate my taxes", "something to calculate"],
    [
      "Write me a poem about the sea.",
      "I cannot help with that\\. You can ask me about the weather .* or arithmetic",
    ],
  ])("%s", async (question, answer) => {
    const { status, response } = await mailroom.user("ann").ask(question);
    expect(status).toBe("completed");
    expect(response).toMatch(new RegExp(answer, "u"));
  });

  it("remembers the place in the next round of the same task", async () => {
    const ann = mailroom.user("ann");
    const first = await ann.ask("What is the weather in Oslo today?");
    expect(first.response).toMatch(new RegExp(forecast("Oslo", "2026-03-02")));
    const second = await ann.ask("And tomorrow?", { taskId: first.taskId });
    expect(second.response).toMatch(new RegExp(forecast("Oslo", "2026-03-03")));
    const third = await ann.ask("What is 3 + 4?", { taskId: first.taskId });
    expect(third.response).toBe("3 + 4 = 7.");
  });
});

describe("the bundled agents", () => {
  it("work together in any selection", async () => {
    const team = ["consultant", "analyst"] as const;
    const mailroom = await open(
      defineSwarm({
        name: "office",
        agents: [
          exampleAgent("supervisor", { commTargets: team }),
          ...team.map((name) => exampleAgent(name, { commTargets: ["supervisor"] })),
        ],
      }),
    );
    const { response } = await mailroom.user("ann").ask("Please analyze 12, 15, 9 and 24, and advise us.");
    expect(response).toMatch(/^The figures: count 4, sum 60, mean 15, median 13\.5, .* Before you decide/);
    await mailroom.close();
  });

  it("can be named in a swarm file", async () => {
    const [loaded] = await loadSwarmsFromText(
      JSON.stringify([
        {
          name: "office",
          version: "1.0.0",
          entrypoint: "supervisor",
          agents: [
            {
              name: "supervisor",
              factory: "mail:example/supervisor",
              comm_targets: ["math"],
              enable_entrypoint: true,
              can_complete_tasks: true,
            },
            {
              name: "math",
              factory: "mail:example/math",
              comm_targets: ["supervisor"],
              actions: ["calculate"],
            },
          ],
          action_imports: ["mail:example/calculate"],
        },
      ]),
    );
    if (loaded === undefined) throw new Error("nothing was loaded");
    const mailroom = await open(loaded.definition);
    expect((await mailroom.user("ann").ask("6 times 7")).response).toBe("6 times 7 = 42.");
    await mailroom.close();
  });
});
