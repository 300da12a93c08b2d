/** The swarm of the crash test. Its agents keep no state in memory: they use only their turn. */
import { setTimeout as delay } from "node:timers/promises";
import type { Mail } from "../../src/agents/mail.js";
import { isRecord } from "../../src/base/index.js";
import type { Action } from "../../src/engine/agent.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import { defineAgent } from "../../src/swarm/agent.js";
import { defineSwarm } from "../../src/swarm/define.js";
import type { EffectLog } from "./effects.js";
import { type Plan, planOf } from "./plans.js";

const WORKERS = ["red", "green", "blue"] as const;

/** Actions that may run again with the same call id after a crash; `charge` may not. */
export const IDEMPOTENT_ACTIONS: ReadonlySet<string> = new Set(["tally"]);

/** Built without `defineAction`, whose validator takes longer to load than most processes run. */
function effectAction(name: string, effects: EffectLog): Action {
  return {
    name,
    description: `Leaves its trace in a file (${name}).`,
    parameters: { type: "object", properties: { nonce: { type: "number" }, act: { type: "number" } } },
    idempotent: IDEMPOTENT_ACTIONS.has(name),
    ...(name === "buy" && { approval: true }),
    check: (args) => ({ ok: true, value: args }),
    run: async (args, { callId, attempt }) => {
      const { nonce, act } = jobOf(args);
      effects.add({ callId, attempt, phase: "begin" });
      if (act > 0) await delay(act);
      effects.add({ callId, attempt, phase: "end" });
      return `${name} ${nonce}`;
    },
  };
}

function jobOf(args: unknown): { nonce: number; act: number } {
  if (!isRecord(args)) throw new Error("an action needs arguments");
  return { nonce: Number(args.nonce), act: Number(args.act) };
}

export function crashSwarm(effects: EffectLog): SwarmDefinition {
  const actions = ["tally", "charge", "approve", "buy"].map((name) => effectAction(name, effects));
  return defineSwarm({
    name: "crash",
    entrypoint: "desk",
    breakpointTools: ["approve"],
    agents: [
      defineAgent({
        name: "desk",
        enableEntrypoint: true,
        canCompleteTasks: true,
        commTargets: ["clerk", ...WORKERS],
        actions,
        run: desk,
      }),
      defineAgent({ name: "clerk", commTargets: ["desk", "archive"], run: clerk }),
      defineAgent({ name: "archive", commTargets: ["clerk"], run: archive }),
      ...WORKERS.map((name) => defineAgent({ name, commTargets: ["desk"], actions, run: worker })),
    ],
  });
}

async function desk(mail: Mail): Promise<void> {
  const plan = planOf(mail.question?.message.body);
  await think(plan);
  if (!hasBegun(mail)) return begin(mail, plan);
  const answers = WORKERS.filter((name) => mail.answerFrom(name) !== undefined);
  const enough = plan.kind === "race" && answers.length > 0;
  if (mail.waitingFor.length > 0 && !enough) return mail.await("the others are at work");
  mail.complete(`done with ${plan.nonce}: ${mail.result?.content ?? answers.join(", ")}`);
}

/** Whether the desk has done anything since the user last wrote. */
function hasBegun(mail: Mail): boolean {
  const opener = mail.history.findLastIndex(
    (item) => item.kind === "message" && item.message.id === mail.question?.id,
  );
  return mail.history.slice(opener).some((item) => item.kind === "answer");
}

function begin(mail: Mail, plan: Plan): void {
  const job = { nonce: plan.nonce, act: plan.act };
  switch (plan.kind) {
    case "chain":
      return mail.request("clerk", "look it up", JSON.stringify(plan));
    case "fan":
    case "race":
    case "approvals":
      for (const name of WORKERS) mail.request(name, "a job", JSON.stringify(plan));
      return mail.await("the workers");
    case "act":
      // They run together.
      mail.act("tally", job);
      mail.act("charge", job);
      mail.act("charge", { ...job, act: plan.act * 2 });
      mail.act("tally", job);
      return;
    case "pause":
      mail.act("tally", job);
      mail.act("approve", job);
      return;
    case "purchase":
      mail.act("buy", job);
      mail.act("tally", job);
      mail.act("buy", { ...job, act: plan.act * 2 });
      return;
    case "poison":
      process.kill(process.pid, "SIGKILL");
  }
}

async function clerk(mail: Mail): Promise<void> {
  await think(planOf(mail.body));
  if (mail.from === "archive") mail.respond("desk", "found", mail.body);
  else mail.request("archive", "where is it", mail.body);
}

async function archive(mail: Mail): Promise<void> {
  await think(planOf(mail.body));
  mail.reply(mail.body);
}

/** Each of the three workers handles the same job differently. */
async function worker(mail: Mail): Promise<void> {
  const plan = planOf(mail.body);
  await think(plan);
  if (isAnswered(mail)) return mail.reply(`${plan.nonce}: ${mail.result?.content ?? "nothing"}`);
  const job = { nonce: plan.nonce, act: plan.act };
  if (mail.agent === "red") mail.act("charge", job);
  else if (plan.kind === "approvals") mail.act("approve", job);
  else if (mail.agent === "green") mail.act("tally", { ...job, act: plan.act * 2 });
  else mail.reply(`${plan.nonce}: at once`);
}

/** Whether the agent was woken by the results of its calls, not by a message. */
function isAnswered(mail: Mail): boolean {
  return mail.messages.at(-1)?.message.sender.address_type === "system" && mail.result !== undefined;
}

async function think(plan: Plan): Promise<void> {
  if (plan.think > 0) await delay(plan.think);
}
