/** Checks that the documentation's examples load and do what the text says. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Story } from "../../../test/swarms/turn.js";
import { scriptedAgentFromParams } from "./agent.js";

const blocks = [
  ...readFileSync(new URL("../../../docs/scripted-agents.md", import.meta.url), "utf8").matchAll(
    /```json\n(.*?)```/gs,
  ),
].map(([, json = ""]): unknown => JSON.parse(json));

describe("docs/scripted-agents.md", () => {
  it("the documented agent asks its clerk", async () => {
    const { agent_params, comm_targets } = Object(blocks[0]);
    const desk = scriptedAgentFromParams(agent_params, { commTargets: comm_targets, actions: [] });
    const story = new Story().gets({ from: "ann", fromType: "user", body: "Are you open on Saturday?" });
    const [ask] = (await desk(story.turn())).calls;
    expect(ask).toMatchObject({ name: "send_request", args: { target: "clerk", body: "Saturday" } });
    story.calls({ name: "send_request", args: { target: "clerk" } });
    story.gets({ from: "clerk", type: "response", body: "10 to 16" });
    const [done] = (await desk(story.turn())).calls;
    expect(done?.args).toEqual({ finish_message: "On Saturday we are open: 10 to 16." });
  });

  it("the documented supervisor waits for both helpers", async () => {
    const boss = scriptedAgentFromParams(
      { rules: blocks[1] },
      { commTargets: ["weather", "math"], actions: [] },
    );
    const next = async (story: Story) =>
      (await boss(story.turn())).calls.map(({ name, args }) => ({ name, args }));
    const story = new Story();
    for (const round of ["first", "second"]) {
      story.gets({ from: "ann", fromType: "user", body: round });
      const asked = await next(story);
      expect(asked.map(({ args }) => args.target)).toEqual(["weather", "math"]);
      story.calls(...asked).gets({ from: "math", type: "response", body: `${round} sum` });
      expect(await next(story)).toMatchObject([{ name: "await_message" }]);
      story.calls({ name: "await_message", args: {} });
      story.gets({ from: "weather", type: "response", body: `${round} sun` });
      expect(await next(story)).toMatchObject([{ args: { finish_message: `${round} sun ${round} sum` } }]);
      story.calls({ name: "task_complete", args: {} });
    }
  });
});
