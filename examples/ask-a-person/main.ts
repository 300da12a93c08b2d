/**
 * A breakpoint: a person must approve before the shop spends money.
 *
 *   npx tsx examples/ask-a-person/main.ts           asks at the terminal
 *   npx tsx examples/ask-a-person/main.ts --check   answers by itself and checks the result
 */
import assert from "node:assert/strict";
import { createInterface } from "node:readline/promises";
import { type Answer, defineAction, defineAgent, defineSwarm, Mailroom } from "agent-mailroom";
import { z } from "zod";

// The function of a breakpoint tool never runs; the user's answer is its result.
const approve = defineAction({
  name: "approve_order",
  description: "Asks a person whether an order may be placed.",
  parameters: z.object({ item: z.string(), price: z.number() }),
  run: () => "never run",
});

const buyer = defineAgent({
  name: "buyer",
  enableEntrypoint: true,
  canCompleteTasks: true,
  actions: [approve],
  run: (mail) => {
    if (mail.result === undefined) return mail.act(approve, { item: mail.body, price: 120 });
    const yes = /^y(es)?\b/i.test(mail.result.content);
    mail.complete(yes ? `Ordered: ${mail.question?.message.body}.` : "Nothing was ordered.");
  },
});

const mailroom = await Mailroom.open({
  swarm: defineSwarm({ name: "office", agents: [buyer], breakpointTools: ["approve_order"] }),
  data: false,
});
const ann = mailroom.user("ann");

/** Asks until no call waits for an answer. */
async function order(item: string, person: (question: string) => Promise<string>): Promise<Answer> {
  let answer = await ann.ask(item);
  while (answer.status === "paused") {
    const task = await ann.requireTask(answer.taskId);
    // The task waits in the store: another process could answer days later.
    const results = [];
    for (const call of answer.breakpoints) {
      const content = await person(`${call.name} ${JSON.stringify(call.args)}? `);
      results.push({ callId: call.id, content });
    }
    answer = await task.answer(results);
  }
  return answer;
}

if (process.argv.includes("--check") || !process.stdin.isTTY) {
  const yes = await order("a ladder", async () => "yes");
  const no = await order("a boat", async () => "no, too expensive");
  console.log(yes.response);
  console.log(no.response);
  assert.equal(yes.response, "Ordered: a ladder.");
  assert.equal(no.response, "Nothing was ordered.");
} else {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await order("a ladder", (question) => terminal.question(question));
  terminal.close();
  console.log(answer.response);
}
await mailroom.close();
