/**
 * A swarm in one file: a front desk that users write to, and a clerk who knows the opening hours.
 *
 *   npx tsx examples/hello-swarm/main.ts
 */
import assert from "node:assert/strict";
import { defineAction, defineAgent, defineSwarm, Mailroom } from "agent-mailroom";
import { z } from "zod";

const openingHours = defineAction({
  name: "opening_hours",
  description: "Returns when the shop is open on a day of the week.",
  parameters: z.object({ day: z.enum(["weekday", "saturday", "sunday"]) }),
  idempotent: true,
  run: ({ day }) => ({ weekday: "9 to 18", saturday: "10 to 16", sunday: "closed" })[day],
});

const desk = defineAgent({
  name: "desk",
  commTargets: ["clerk"],
  enableEntrypoint: true,
  canCompleteTasks: true,
  run: (mail) => {
    const hours = mail.answerFrom("clerk");
    if (hours === undefined) mail.request("clerk", "Opening hours", mail.body);
    else mail.complete(`Hello ${mail.question?.message.sender.address}! Our hours: ${hours}.`);
  },
});

const clerk = defineAgent({
  name: "clerk",
  commTargets: ["desk"],
  actions: [openingHours],
  run: (mail) => {
    if (mail.result !== undefined) return mail.reply(mail.result.content);
    const day = /sunday/i.test(mail.body) ? "sunday" : /saturday/i.test(mail.body) ? "saturday" : "weekday";
    mail.act(openingHours, { day });
  },
});

const mailroom = await Mailroom.open({
  swarm: defineSwarm({ name: "shop", agents: [desk, clerk] }),
  data: false,
});
const answer = await mailroom.user("ann").ask("When are you open on Saturday?");
console.log(answer.response);
await mailroom.close();

assert.equal(answer.response, "Hello ann! Our hours: 10 to 16.");
