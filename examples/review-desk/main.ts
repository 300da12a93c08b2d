/**
 * A review desk: a writer drafts, a reviewer objects until the text is fine, and nothing is published before a person
 * approves it at a breakpoint. The process may end between question and answer: the second half reopens the data.
 *
 *   npx tsx examples/review-desk/main.ts
 *   OPENAI_API_KEY=… npx tsx examples/review-desk/main.ts     the same agents with models
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAction, defineAgent, defineSwarm, Mailroom } from "agent-mailroom";
import { z } from "zod";
import { llm, scriptOrModel } from "../agents.js";

/** A breakpoint tool: the editor's answer is its result. */
const approve = defineAction({
  name: "ask_editor",
  description: "Shows a text to the editor, who answers yes, or what must change.",
  parameters: z.object({ text: z.string() }),
  run: () => "never run",
});

const desk = defineAgent({
  name: "desk",
  enableEntrypoint: true,
  canCompleteTasks: true,
  commTargets: ["writer", "reviewer"],
  actions: [approve],
  run: scriptOrModel(
    "You run a review desk. Have 'writer' draft what is asked for and 'reviewer' judge the draft; repeat until the reviewer has no objection. Then show the text with ask_editor. If the editor says yes, complete the task with the text; else have the writer change it and ask again.",
    (mail) => {
      const verdict = mail.resultOf(approve);
      if (verdict !== undefined) {
        const text = mail.answerFrom("writer") ?? "";
        if (/^yes\b/i.test(verdict.content)) return mail.complete(`Published: ${text}`);
        return mail.request("writer", "Change", `${text}\n${verdict.content}`);
      }
      if (mail.from === "writer") return mail.request("reviewer", "Judge", mail.body);
      if (mail.from !== "reviewer") return mail.request("writer", "Draft", mail.body);
      if (mail.body === "fine") return mail.act(approve, { text: mail.answerFrom("writer") ?? "" });
      mail.request("writer", "Change", `${mail.answerFrom("writer") ?? ""}\n${mail.body}`);
    },
  ),
});

const writer = defineAgent({
  name: "writer",
  description: "Drafts and changes texts",
  commTargets: ["desk"],
  run: scriptOrModel("You write short notices. Answer with the text alone.", (mail) => {
    const [text = "", remark] = mail.body.split("\n");
    if (remark === undefined) return mail.reply("we are closed on monday");
    if (remark.includes("Tuesday")) return mail.reply(text.replace("Monday", "Tuesday"));
    mail.reply("We are closed on Monday.");
  }),
});

const reviewer = defineAgent({
  name: "reviewer",
  description: "Judges texts",
  commTargets: ["desk"],
  run: scriptOrModel("Judge the text. Answer 'fine', or in one line what must change.", (mail) =>
    mail.reply(/^[A-Z].*\.$/.test(mail.body) ? "fine" : "A sentence begins large and ends with a full stop."),
  ),
});

const data = await mkdtemp(join(tmpdir(), "mailroom-review-"));
const open = () =>
  Mailroom.open({
    swarm: defineSwarm({
      name: "review",
      agents: [desk, writer, reviewer],
      breakpointTools: ["ask_editor"],
    }),
    data,
  });

const before = await open();
const asked = await before.user("editor").ask("A notice that we are closed on Monday", { taskId: "notice" });
// A model may decide not to ask, so only scripts are checked.
if (llm === undefined) assert.equal(asked.status, "paused");
console.log("The desk asks:", asked.status === "paused" ? asked.breakpoints[0]?.args.text : "");
await before.close();

const after = await open();
const task = await after.user("editor").requireTask("notice");
const again = asked.status === "paused" ? await task.answer("It is Tuesday.") : asked;
if (llm === undefined) assert.equal(again.status, "paused");
console.log("It asks again:", again.status === "paused" ? again.breakpoints[0]?.args.text : "");
const done = again.status === "paused" ? await task.answer("yes") : again;
console.log(done.response);
if (llm === undefined) assert.equal(done.response, "Published: We are closed on Tuesday.");
await after.close();
await rm(data, { recursive: true });
