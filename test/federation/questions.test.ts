/**
 * Questions of users to another swarm, over connections that are slow and cut, while both servers are killed. Every
 * question is answered by the swarm that was asked, or its sender is notified. `QUESTIONS_SEED` repeats a run's choices,
 * `QUESTIONS` makes it longer.
 */
import { randomInt } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { isRecord } from "../../src/base/index.js";
import { type CompiledChild, compileChild } from "../crash/compile.js";
import { seededRandom } from "../kit/seeded.js";
import { freePort, ServerProcess, Wire } from "./processes.js";

const SEED = Number(process.env.QUESTIONS_SEED ?? randomInt(2 ** 31));
const QUESTIONS = Number(process.env.QUESTIONS ?? 200);
/** One kill per this many questions. */
const PER_KILL = 25;
const ASKING_AT_ONCE = 16;
const random = seededRandom(SEED).next;
const between = (low: number, high: number) => low + random() * (high - low);
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const SETTINGS = {
  deliveryTimeout: 120_000,
  attemptTimeout: 2_000,
  healthInterval: 200,
  failuresToInactive: 100_000,
  requestsPerMinute: 0,
  askInterval: 1_000,
} as const;

let child: CompiledChild;
let alpha: ServerProcess;
let beta: ServerProcess;
let wires: Wire[];

beforeAll(async () => {
  child = compileChild("federation");
  const [alphaPort, betaPort] = [await freePort(), await freePort()];
  const common = { settings: SETTINGS, slow: 20 };
  alpha = new ServerProcess(child.script, { ...common, name: "alpha", others: ["beta"], port: alphaPort });
  beta = new ServerProcess(child.script, { ...common, name: "beta", others: ["alpha"], port: betaPort });
  const delay = () => (random() < 0.5 ? 0 : between(0, 30));
  wires = [new Wire(alphaPort, delay), new Wire(betaPort, delay)];
  await Promise.all([alpha.start(), beta.start(), ...wires.map((wire) => wire.open())]);
  await alpha.register("beta", wires[1]?.url ?? "");
  await beta.register("alpha", wires[0]?.url ?? "");
});
afterAll(async () => {
  await Promise.all([alpha.kill(), beta.kill(), ...wires.map((wire) => wire.close())]);
  alpha.remove();
  beta.remove();
  child.remove();
});

interface Outcome {
  readonly status: unknown;
  readonly text: string;
}

/** Asks until there is an answer; the key makes sure that it is one question. */
async function ask(index: number): Promise<Outcome> {
  const target = index % 4 === 0 ? "slow@beta" : "clerk@beta";
  for (;;) {
    try {
      const { status, body, text } = await alpha.call("/interswarm/message", {
        token: `user:ann-${index % 7}`,
        headers: { "idempotency-key": `question-${index}` },
        json: { user_token: "x", body: `number ${index}`, targets: [target] },
      });
      if (status === 200 && isRecord(body) && body.status !== "running") return { status: body.status, text };
    } catch {
      // The server was killed, or is not back yet.
    }
    await pause(50);
  }
}

it(`[MAIL-G-1] every question is answered by the swarm that was asked, or its sender is notified (QUESTIONS_SEED=${SEED})`, {
  timeout: 120_000 + QUESTIONS * 400,
}, async () => {
  let asking = true;
  let answered = 0;
  let kills = 0;
  const trouble = (async () => {
    while (asking) {
      await pause(between(20, 200));
      if (kills * PER_KILL < answered) {
        const victim = random() < 0.5 ? alpha : beta;
        kills++;
        await victim.kill();
        await pause(between(0, 200));
        await victim.start();
      } else wires[random() < 0.5 ? 0 : 1]?.cut();
    }
  })();
  const outcomes: Outcome[] = [];
  let next = 0;
  const asker = async () => {
    for (let index = next++; index < QUESTIONS; index = next++) {
      outcomes[index] = await ask(index);
      answered++;
    }
  };
  await Promise.all(Array.from({ length: ASKING_AT_ONCE }, asker));
  asking = false;
  await trouble;
  let told = 0;
  for (const [index, { status, text }] of outcomes.entries()) {
    const expected = index % 4 === 0 ? `late: number ${index}` : `beta says: number ${index}`;
    if (status === "completed") expect(text, `question ${index}, seed ${SEED}`).toContain(`"${expected}"`);
    else {
      expect(text, `question ${index}, seed ${SEED}`).toMatch(/undeliverable|no_answer|remote_failed/);
      told++;
    }
  }
  console.info(`questions: ${QUESTIONS} asked, ${told} told, ${kills} kills, QUESTIONS_SEED=${SEED}`);
});
