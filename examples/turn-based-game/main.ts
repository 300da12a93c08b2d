/**
 * Manual mode: the program runs one agent at a time, with the mail that waits for it. Two players take one to three
 * sticks in turn; the player that takes the last one wins. The program enforces the rules, the task is the record.
 *
 *   npx tsx examples/turn-based-game/main.ts
 *   OPENAI_API_KEY=… npx tsx examples/turn-based-game/main.ts     the same players with models
 */
import assert from "node:assert/strict";
import { defineAgent, defineSwarm, type MailFunction, Mailroom, modelAgent } from "agent-mailroom";
import { llm } from "../agents.js";

const RULES =
  "There is a heap of sticks. Players take one, two or three in turn. The player that takes the last stick wins. When you receive the number of sticks left, answer with the number that you take and nothing else.";

/** In manual mode a player's text is its move, so a model must be free to answer without a tool. */
function player(script: MailFunction) {
  return llm === undefined ? script : modelAgent({ llm, system: RULES, defaultToolChoice: "auto" });
}

const left = (text: string): number => Number(/(\d+) left/.exec(text)?.[1] ?? 1);

const clever = defineAgent({
  name: "clever",
  commTargets: ["simple", "referee"],
  run: player((mail) => `${left(mail.body) % 4 || 1}`),
});

const simple = defineAgent({
  name: "simple",
  commTargets: ["clever", "referee"],
  run: player(() => "1"),
});

const referee = defineAgent({
  name: "referee",
  enableEntrypoint: true,
  canCompleteTasks: true,
  commTargets: ["clever", "simple"],
  run: (mail) => mail.complete(mail.messages.at(-1)?.message.body ?? ""),
});

const mailroom = await Mailroom.open({
  swarm: defineSwarm({ name: "game", agents: [referee, clever, simple] }),
  data: false,
});
const { task, outcome } = await mailroom.user("ann").post("A game with 21 sticks.", { manual: true });

let sticks = 21;
let turn: "clever" | "simple" = "clever";
const moves: string[] = [];
for (;;) {
  const said = await task.step(turn, { payload: `${sticks} left` });
  // An invalid move counts as one stick.
  const wanted = Number(/[123]/.exec(said?.message.body ?? "")?.[0] ?? 1);
  const taken = Math.min(wanted, sticks);
  sticks -= taken;
  moves.push(`${turn} takes ${taken}`);
  if (sticks === 0) break;
  turn = turn === "clever" ? "simple" : "clever";
}
console.log(moves.join("\n"));
await task.step("referee", { payload: `${turn} wins` });
const { message } = await outcome;
console.log(message.message.body);
assert.equal(sticks, 0);
assert.equal(await task.status(), "completed");
if (llm === undefined) assert.match(message.message.body, /clever wins/);
await mailroom.close();
