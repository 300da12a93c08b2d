import { afterEach, describe, expect, it } from "vitest";
import { Mailroom } from "../../library/mailroom.js";
import { defineAgent } from "../../swarm/agent.js";
import { defineSwarm } from "../../swarm/define.js";
import type { JournalLocation } from "./index.js";

const swarm = defineSwarm({
  name: "desk",
  agents: [
    defineAgent({
      name: "clerk",
      enableEntrypoint: true,
      canCompleteTasks: true,
      async run(mail) {
        await new Promise((resolve) => setImmediate(resolve));
        if (mail.body.startsWith("fail")) throw new Error(mail.body);
        mail.complete(`answer to ${mail.body}`);
      },
    }),
  ],
});

let mailroom: Mailroom;
afterEach(() => mailroom.close());

describe("the outcome of a message, read from the journal", () => {
  it("is what its waiter received, for any number of waiting messages", async () => {
    mailroom = await Mailroom.open({ swarm, data: false, onProblem: () => {} });
    const ann = mailroom.user("ann");
    const bodies = ["one", "fail two", "three", "four", "fail five", "six"];
    const posted = await Promise.all(bodies.map((body) => ann.post(body, { taskId: "t" })));
    const told = await Promise.all(posted.map(({ outcome }) => outcome));
    expect(new Set(told.map(({ message }) => message.id)).size).toBeGreaterThan(1);
    const read = await Promise.all(posted.map((at) => mailroom.runtime.outcomeOf(at)));
    expect(read).toEqual(told);
  });

  it("is awaited while the round runs, and a cancellation ends the wait", async () => {
    mailroom = await Mailroom.open({
      swarm: defineSwarm({
        name: "desk",
        agents: [
          defineAgent({
            name: "clerk",
            enableEntrypoint: true,
            canCompleteTasks: true,
            run: (mail) =>
              new Promise((_, reject) =>
                mail.signal.addEventListener("abort", () => reject(new Error("stop"))),
              ),
          }),
        ],
      }),
      data: false,
    });
    const posted = await mailroom.user("ann").post("for ever");
    const waiting = mailroom.runtime.outcomeOf(posted);
    await posted.task.cancel();
    expect((await waiting).status).toBe("cancelled");
  });

  it("is not available for a removed task", async () => {
    mailroom = await Mailroom.open({ swarm, data: false });
    const at: JournalLocation = { key: "nobody", taskId: "gone", messageId: "m", number: 2 };
    await expect(mailroom.runtime.outcomeOf(at)).rejects.toMatchObject({ code: "unknown_task" });
  });
});
