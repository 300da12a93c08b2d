/** What comes too late: answers after the time for them, and mail that nobody took in time. */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import type { AgentFunction } from "../../src/engine/agent.js";
import type { Entry } from "../../src/engine/entries.js";
import { agent } from "../kit/swarms.js";
import { VirtualClock } from "../kit/virtual-clock.js";
import { houseSwarm, Slow } from "./agents.js";
import { type House, type HouseOptions, introduce, openHouse } from "./house.js";
import { until } from "./until.js";
import { deliver } from "./wire.js";

async function open(options: HouseOptions): Promise<House> {
  const house = await openHouse(options);
  onTestFinished(() => house.close());
  return house;
}

async function journalOf(house: House, taskId: string): Promise<Entry[]> {
  const task = await house.mailroom.user("ann").requireTask(taskId);
  const entries: Entry[] = [];
  for await (const { entry } of task.journal()) entries.push(entry);
  return entries;
}

const sentBy = (entries: readonly Entry[], sender: string) =>
  entries.filter((entry) => entry.t === "sent" && entry.message.message.sender.address === sender);

/** Asks elsewhere; when no answer comes, asks at home and goes on; completes with the first answer that it gets. */
const patient: AgentFunction = (turn) => {
  const [{ message, msg_type }] = turn.messages;
  const ask = (target: string) => ({
    calls: [{ id: "1", name: "send_request", args: { target, subject: "Question", body: "[hold] hurry" } }],
  });
  if (msg_type === "response" && message.sender.address_type === "agent") {
    const finish_message = `${message.sender.address}: ${message.body}`;
    return { calls: [{ id: "1", name: "task_complete", args: { finish_message } }] };
  }
  return ask(message.sender.address_type === "system" ? "slow" : "slow@beta");
};

it("an answer after the time for it reaches the agent that asked, if the task still runs; later it is kept and changes nothing", async () => {
  const [here, there] = [new Slow(), new Slow()];
  const { agents, ...rest } = houseSwarm("alpha", ["beta"], here);
  const boss = agent("boss", {
    targets: ["slow", "slow@beta"],
    supervisor: true,
    entrypoint: true,
    interswarm: true,
    run: patient,
  });
  const alpha = await open({
    swarm: { ...rest, agents: [boss, ...agents.slice(1)] },
    limits: { replyTime: 50 },
  });
  const beta = await open({ swarm: houseSwarm("beta", ["alpha"], there) });
  onTestFinished(() => {
    here.release(true);
    there.release(true);
  });
  await introduce(alpha, beta);
  const taskId = randomUUID();
  const answered = alpha.mailroom.user("ann").ask("go", { taskId });
  // It has been told, and goes on at home.
  await until(() => here.begun > 0 || undefined, "the notice");
  there.release(true);
  expect(await answered).toMatchObject({ status: "completed", response: "slow@beta: late: [hold] hurry" });

  const before = await journalOf(alpha, taskId);
  const [late] = sentBy(before, "slow@beta");
  const notices = sentBy(before, "alpha").filter((entry) => JSON.stringify(entry).includes("no answer came"));
  expect([sentBy(before, "slow@beta").length, notices.length]).toEqual([1, 1]);
  if (late?.t !== "sent" || late.message.msg_type !== "response") throw new Error("the late answer");

  // The same answer once more, in a message of its own, when the task has ended.
  const again = await deliver(alpha.url, "back", {
    taskId,
    owner: "user:ann@alpha",
    contributors: ["user:ann@alpha", "swarm:alpha@beta"],
    type: "response",
    from: "slow@beta",
    to: "boss@alpha",
    requestId: late.message.message.request_id,
    body: "much too late",
  });
  expect(again.status).toBe(200);
  const after = await journalOf(alpha, taskId);
  expect(sentBy(after, "slow@beta").map((entry) => JSON.stringify(entry))).toEqual([
    expect.any(String),
    expect.stringContaining("much too late"),
  ]);
  const task = await alpha.mailroom.user("ann").requireTask(taskId);
  expect(await task.status()).toBe("completed");
  const turns = (entries: readonly Entry[]) => entries.filter(({ t }) => t === "turn").length;
  expect(turns(after)).toBe(turns(before));
});

it("[MAIL-ROUTE-05, MAIL-OURS-08] mail that finds no place beside an attempt that hangs is given back at its deadline, not when the attempt ends", async () => {
  const server = createServer((request, response) => {
    request.resume();
    const root = { version: "1.2", swarm: "hanging", capabilities: ["dedupe"] };
    if (request.url === "/" || request.url === "/health") response.end(JSON.stringify(root));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const clock = new VirtualClock();
  const HOUR = 3_600_000;
  const alpha = await openHouse({
    swarm: houseSwarm("alpha", ["hanging"]),
    clock,
    settings: {
      deliveryTime: 120_000,
      attemptTime: HOUR,
      attemptsPerSwarm: 1,
      healthInterval: 1_000 * HOUR,
      failuresToInactive: 1_000,
    },
  });
  onTestFinished(async () => {
    const closed = alpha.close().then(() => true);
    // It gives what runs a moment of its own clock.
    await until(() => {
      clock.advance(10_000);
      return Promise.race([closed, undefined]);
    }, "the end");
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await alpha.federation.registry.register({ name: "hanging", baseUrl, authToken: "x", volatile: true });
  const user = alpha.mailroom.user("ann");
  const mail = new Promise<void>((resolve) => {
    server.on("request", ({ url }) => url === "/interswarm/forward" && resolve());
  });
  const first = await user.post("ask clerk@hanging: one");
  await mail;
  const start = clock.now();
  const second = await user.post("ask clerk@hanging: two");
  await until(async () => {
    clock.advance(10_000);
    return (await second.task.status()) !== "running" || undefined;
  }, "the notice");
  expect(JSON.stringify(await second.outcome)).toMatch(/not delivered by its deadline; it was never tried/);
  expect(clock.now() - start).toBeLessThan(HOUR / 10);
  expect(await first.task.status()).toBe("running");
});
