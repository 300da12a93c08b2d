/**
 * A support desk: a coordinator asks a classifier and a sentiment reader at the same time, answers questions with a
 * known answer from the FAQ, and hands the rest to people.
 *
 *   npx tsx examples/support-desk/main.ts
 *   OPENAI_API_KEY=… npx tsx examples/support-desk/main.ts     the same agents with models
 */
import assert from "node:assert/strict";
import { defineAction, defineAgent, defineSwarm, Mailroom } from "agent-mailroom";
import { z } from "zod";
import { llm, scriptOrModel } from "../agents.js";

const FAQ: Readonly<Record<string, string>> = {
  delivery: "Parcels take two to four days. The link in your e-mail shows where yours is.",
  returns: "You have thirty days; the label is in the box.",
};

const lookUp = defineAction({
  name: "look_up",
  description: "Returns the official answer to a topic: delivery or returns.",
  parameters: z.object({ topic: z.string() }),
  idempotent: true,
  run: ({ topic }) => FAQ[topic] ?? "There is no official answer.",
});

const coordinator = defineAgent({
  name: "coordinator",
  enableEntrypoint: true,
  canCompleteTasks: true,
  commTargets: ["classifier", "sentiment", "faq"],
  run: scriptOrModel(
    "You answer customers. Ask 'classifier' for the topic and 'sentiment' for the mood of each message, then 'faq' for the answer. Apologize to angry customers. If there is no official answer, say that a colleague will write.",
    (mail) => {
      if (mail.fromType === "user") {
        mail.request("classifier", "Topic?", mail.body);
        return mail.request("sentiment", "Mood?", mail.body);
      }
      if (mail.waitingFor.length > 0) return mail.await();
      const topic = mail.answerFrom("classifier") ?? "other";
      const sorry = mail.answerFrom("sentiment") === "angry" ? "We are sorry. " : "";
      if (topic === "other") return mail.complete(`${sorry}A colleague will write to you.`);
      const answer = mail.answerFrom("faq");
      if (answer === undefined) return mail.request("faq", "Answer?", topic);
      mail.complete(sorry + answer);
    },
  ),
});

const classifier = defineAgent({
  name: "classifier",
  description: "Says what a message is about: delivery, returns or other",
  commTargets: ["coordinator"],
  run: scriptOrModel("Answer each message with one word: delivery, returns or other.", (mail) => {
    if (/parcel|deliver|arriv/i.test(mail.body)) return mail.reply("delivery");
    mail.reply(/return|refund|broken/i.test(mail.body) ? "returns" : "other");
  }),
});

const sentiment = defineAgent({
  name: "sentiment",
  description: "Says how a customer feels: calm or angry",
  commTargets: ["coordinator"],
  run: scriptOrModel("Answer each message with one word about the customer's mood: calm or angry.", (mail) =>
    mail.reply(/!|never again|terrible/i.test(mail.body) ? "angry" : "calm"),
  ),
});

const faq = defineAgent({
  name: "faq",
  description: "Knows the official answers",
  commTargets: ["coordinator"],
  actions: [lookUp],
  run: scriptOrModel("Look the topic up and answer with exactly what you find.", (mail) => {
    const found = mail.resultOf(lookUp);
    if (found === undefined) return mail.act(lookUp, { topic: mail.body });
    mail.reply(found.content);
  }),
});

const mailroom = await Mailroom.open({
  swarm: defineSwarm({ name: "support", agents: [coordinator, classifier, sentiment, faq] }),
  data: false,
});
const customer = mailroom.user("customer");
const answers: string[] = [];
for (const question of [
  "When will my parcel arrive?",
  "The lamp is broken, I want a refund! Never again!",
  "Do you sponsor chess clubs?",
]) {
  const { response } = await customer.ask(question);
  console.log(`> ${question}\n${response}\n`);
  answers.push(response);
}
if (llm === undefined) {
  assert.deepEqual(answers, [
    "Parcels take two to four days. The link in your e-mail shows where yours is.",
    "We are sorry. You have thirty days; the label is in the box.",
    "A colleague will write to you.",
  ]);
}
await mailroom.close();
