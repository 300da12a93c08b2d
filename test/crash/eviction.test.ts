/** Idle tasks leave memory and are loaded on demand: a task never has more than one state in memory. */
import { expect, it } from "vitest";
import { Mailroom } from "../../src/library/mailroom.js";
import { defineAgent } from "../../src/swarm/agent.js";
import { defineSwarm } from "../../src/swarm/define.js";

it("concurrent messages to many idle tasks are answered, even if only one task fits into memory", async () => {
  const swarm = defineSwarm({
    name: "echo",
    agents: [
      defineAgent({
        name: "echo",
        enableEntrypoint: true,
        canCompleteTasks: true,
        run: (mail) => mail.complete(mail.body),
      }),
    ],
  });
  const problems: string[] = [];
  const mailroom = await Mailroom.open({
    swarm,
    data: false,
    limits: { cachedTasks: 1 },
    onProblem: ({ message }) => problems.push(message),
  });
  const ann = mailroom.user("ann");
  const ids = Array.from({ length: 12 }, (_, index) => `task ${index}`);
  for (const taskId of ids) await ann.ask("first", { taskId });
  const answers = await Promise.all(
    ids.flatMap((taskId) => [
      ann.ask("second", { taskId }),
      ann.requireTask(taskId).then((task) => task.status()),
      ann.ask("third", { taskId }),
    ]),
  );
  await mailroom.close();
  expect(problems).toEqual([]);
  const responses = answers.flatMap((answer) => (typeof answer === "string" ? [] : [answer.response]));
  expect(responses.filter((response) => response === "third")).toHaveLength(12);
});
