/**
 * Research: a searcher finds statements, a verifier drops those without a second source, and a summarizer writes up
 * the rest.
 *
 *   npx tsx examples/research/main.ts
 *   OPENAI_API_KEY=… npx tsx examples/research/main.ts     the same agents with models
 */
import assert from "node:assert/strict";
import { defineAction, defineAgent, defineSwarm, Mailroom } from "agent-mailroom";
import { z } from "zod";
import { llm, scriptOrModel } from "../agents.js";

/** A library small enough to read. In a project of your own: an HTTP action, or an MCP server. */
const LIBRARY: readonly { readonly source: string; readonly text: string }[] = [
  { source: "atlas", text: "The lighthouse of Alexandria was over 100 metres high." },
  { source: "chronicle", text: "The lighthouse of Alexandria was over 100 metres high." },
  { source: "chronicle", text: "The lighthouse of Alexandria fell in an earthquake." },
  { source: "travels", text: "The lighthouse of Alexandria fell in an earthquake." },
  { source: "travels", text: "The lighthouse of Alexandria was built by giants." },
];

const search = defineAction({
  name: "search_library",
  description: "Returns statements that contain a word, one a line.",
  parameters: z.object({ word: z.string() }),
  idempotent: true,
  run: ({ word }) =>
    [...new Set(LIBRARY.map(({ text }) => text))]
      .filter((text) => text.toLowerCase().includes(word.toLowerCase()))
      .join("\n") || "nothing",
});

const sources = defineAction({
  name: "sources_of",
  description: "Returns the names of the sources that make a statement.",
  parameters: z.object({ statement: z.string() }),
  idempotent: true,
  run: ({ statement }) =>
    LIBRARY.filter(({ text }) => text === statement)
      .map(({ source }) => source)
      .join(", ") || "none",
});

const lead = defineAgent({
  name: "lead",
  enableEntrypoint: true,
  canCompleteTasks: true,
  commTargets: ["searcher", "verifier", "summarizer"],
  run: scriptOrModel(
    "You lead research. Have 'searcher' find statements about one word of the question, 'verifier' check them, and 'summarizer' write up what was confirmed. Complete the task with the summary.",
    (mail) => {
      switch (mail.from) {
        case "searcher":
          return mail.request("verifier", "Check", mail.body);
        case "verifier":
          return mail.request("summarizer", "Write", mail.body);
        case "summarizer":
          return mail.complete(mail.body);
        default:
          mail.request("searcher", "Find", mail.body);
      }
    },
  ),
});

const searcher = defineAgent({
  name: "searcher",
  description: "Finds statements",
  commTargets: ["lead"],
  actions: [search],
  run: scriptOrModel(
    "Search the library for one word and answer with the statements, one a line.",
    (mail) => {
      const found = mail.resultOf(search);
      if (found !== undefined) return mail.reply(found.content);
      mail.act(search, { word: /lighthouse/i.exec(mail.body)?.[0] ?? mail.body });
    },
  ),
});

const verifier = defineAgent({
  name: "verifier",
  description: "Keeps what two sources say",
  commTargets: ["lead"],
  actions: [sources],
  run: scriptOrModel(
    "Look up the sources of every statement, all at once, and answer with those that have at least two, one a line.",
    (mail) => {
      const statements = mail.body.split("\n");
      if (mail.results.length === 0) {
        for (const statement of statements) mail.act(sources, { statement });
        return;
      }
      // Results are in the order of the calls.
      const kept = statements.filter((_, index) => mail.results[index]?.content.includes(","));
      mail.reply(kept.join("\n"));
    },
  ),
});

const summarizer = defineAgent({
  name: "summarizer",
  description: "Writes things up",
  commTargets: ["lead"],
  run: scriptOrModel("Put the statements into one short paragraph. Add nothing.", (mail) =>
    mail.reply(mail.body.split("\n").join(" ")),
  ),
});

const mailroom = await Mailroom.open({
  swarm: defineSwarm({ name: "research", agents: [lead, searcher, verifier, summarizer] }),
  data: false,
});
const { response } = await mailroom.user("ann").ask("What is known about the lighthouse?");
console.log(response);
if (llm === undefined) {
  assert.equal(
    response,
    "The lighthouse of Alexandria was over 100 metres high. The lighthouse of Alexandria fell in an earthquake.",
  );
}
await mailroom.close();
