/**
 * Requests and replies over the bridge are never lost, and the load from a peer is limited (decision G2, decision
 * G3).
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deferred } from "../../src/base/index.js";
import type { Store } from "../../src/engine/ports.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { meshActions } from "../../src/mesh/bridge/actions.js";
import { tooLong } from "../../src/mesh/message/check.js";
import { openStore } from "../../src/store/index.js";
import { type Agent, Mesh, textsAt } from "./harness.js";
import { Houses, shopOf } from "./servers.js";

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let lab: string;
let houses: Houses;
const gates: (() => void)[] = [];

beforeEach(async () => {
  mesh = new Mesh();
  alice = await mesh.agent("alice", {}, await openStore({ path: ":memory:" }));
  bob = await mesh.agent("bob", {}, await openStore({ path: ":memory:" }));
  lab = await mesh.swarm(alice, bob);
  houses = new Houses(mesh);
});
afterEach(async () => {
  for (const open of gates.splice(0)) open();
  await houses[Symbol.asyncDispose]();
  await mesh.close();
});

const problemsOf = ({ problems }: Agent, code: string): string[] =>
  problems.filter((problem) => problem.code === code).map(({ message }) => message);

const selling = shopOf((mail) => mail.complete(`sold: ${mail.body}`));

/** A promise that is resolved at the end of the test at the latest. */
function gate() {
  const { promise: opening, resolve: open } = deferred<void>();
  gates.push(open);
  return { opening, open };
}

/** A shop that answers when the test says so. */
function slowShop() {
  const seen: string[] = [];
  const { opening, open } = gate();
  const swarm = shopOf(async (mail) => {
    seen.push(mail.body);
    await opening;
    mail.complete(`sold: ${mail.body}`);
  });
  return { seen, open, swarm };
}

const tell = (from: Agent, to: string, content: string, extras = {}) =>
  from.agent.send({ swarmId: lab, to, content, extras });

describe("the reply of a task", () => {
  it("a reply that exceeds the size of a message is truncated and says so", async () => {
    await houses.open(
      bob,
      shopOf((mail) => mail.complete("🍎".repeat(70_000))),
    );
    await tell(alice, "bob", "all your apples");
    await houses.settle();
    const [answer = ""] = await textsAt(alice);
    expect(answer).toMatch(/^🍎+\n\[truncated/u);
    expect([tooLong(answer, 65_536), tooLong(answer, 65_535)]).toEqual([false, true]);
  });

  it("a lone surrogate in a reply is replaced", async () => {
    await houses.open(
      bob,
      shopOf((mail) => mail.complete("half \ud83c an apple")),
    );
    await tell(alice, "bob", "half an apple");
    await houses.settle();
    expect(await textsAt(alice)).toEqual(["half \ufffd an apple"]);
  });

  it("a reply that cannot be stored is stored when the store works again", async () => {
    let failures = 0;
    const commit: Store["commit"] = async (batch) => {
      const isAnswer = batch.rows?.some(({ kind }) => kind === "mesh.sent.put") === true;
      if (isAnswer && failures < 3) {
        failures += 1;
        throw new Error("the disk is full");
      }
      return bob.store.commit(batch);
    };
    const { mesh: reads, tasks } = bob.store;
    await houses.open(bob, selling, { store: { commit, mesh: reads, tasks } });
    await tell(alice, "bob", "apples");
    await houses.settle();
    expect([failures, await textsAt(alice)]).toEqual([1, []]);
    await houses.pass(30_000);
    expect([failures, await textsAt(alice)]).toEqual([3, ["sold: apples"]]);
    expect(problemsOf(bob, "mesh_bridge_failed")).toHaveLength(1);
  });
});

describe("a failing store", () => {
  it("a failing store only delays messages from peers", async () => {
    const { commit, mesh: reads, tasks } = bob.store;
    // Each read fails once: by id, and of all pending messages.
    let [byId, all] = [0, 0];
    const fail = () => Promise.reject(new Error("the disk cannot be read"));
    const message: typeof reads.message = (id) => (++byId === 1 ? fail() : reads.message(id));
    const queued: typeof reads.queued = (status, ...rest) =>
      status === "pending" && ++all === 2 ? fail() : reads.queued(status, ...rest);
    const store = { commit: commit.bind(bob.store), mesh: { ...reads, message, queued }, tasks };
    await houses.open(bob, selling, { store });
    await tell(alice, "bob", "apples");
    await tell(alice, "bob", "pears");
    await houses.settle();
    expect(await textsAt(alice)).toEqual([]);
    await houses.pass(5_000);
    expect((await textsAt(alice)).sort()).toEqual(["sold: apples", "sold: pears"]);
    expect(problemsOf(bob, "mesh_bridge_late")).toEqual([expect.stringContaining("the disk cannot be read")]);
  });
});

describe("a mailroom without capacity", () => {
  it("messages that arrive without capacity become tasks in order when there is capacity again", async () => {
    const shop = slowShop();
    await houses.open(bob, shop.swarm, { limits: { runningTasks: 1 } });
    await tell(alice, "bob", "one");
    const thread_id = crypto.randomUUID();
    await tell(alice, "bob", "two", { thread_id });
    // Long enough that it is retried once a minute by now.
    await houses.pass(310_000);
    expect(shop.seen).toEqual(["one"]);
    expect(await bob.store.mesh.queuedCount("pending", 9)).toBe(1);
    expect(problemsOf(bob, "mesh_bridge_late")).toHaveLength(1);
    shop.open();
    await houses.settle();
    await tell(alice, "bob", "three", { thread_id });
    await houses.settle();
    expect(shop.seen).toEqual(["one"]);
    await houses.pass(10_000);
    expect(shop.seen).toEqual(["one", "two", "three"]);
    expect((await textsAt(alice)).sort()).toEqual(["sold: one", "sold: three", "sold: two"]);
  });

  it("one peer's postponed tasks do not block another peer's", async () => {
    const carol = await mesh.agent("carol");
    await carol.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    const shop = slowShop();
    await houses.open(bob, shop.swarm, { limits: { runningTasksPerInstance: 1 } });
    await tell(alice, "bob", "one");
    await tell(alice, "bob", "two");
    await houses.settle();
    await tell(carol, "bob", "three");
    await houses.settle();
    expect(shop.seen).toEqual(["one", "three"]);
  });

  it("a reply that an agent awaits is delivered although other mail of the same peer is postponed", async () => {
    const desk = await houses.open(alice, asking, { limits: { runningTasks: 1 } });
    const { outcome } = await desk.mailroom.runtime.post({ role: "user", id: "ann" }, { body: "pears?" });
    await houses.settle();
    await tell(bob, "alice", "by the way");
    const [question] = await bob.store.mesh.inbox({ limit: 1 });
    await houses.settle();
    if (question === undefined) throw new Error("bob was not asked");
    await bob.agent.reply(question, "plenty");
    await houses.settle();
    expect((await outcome).message.message.body).toBe("bob@lab says plenty");
    await houses.pass(10_000);
    expect(await alice.store.mesh.queuedCount("pending", 9)).toBe(0);
  });

  it("a backlog of more than one page is processed completely", async () => {
    for (let count = 0; count < 55; count += 1) await tell(alice, "bob", `order ${count}`);
    await mesh.settle();
    const shop = slowShop();
    await houses.open(bob, shop.swarm, { limits: { runningTasks: 1 }, tasksPerHour: 100 });
    await houses.settle();
    expect(await bob.store.mesh.queuedCount("pending", 100)).toBe(54);
    shop.open();
    await houses.pass(10_000);
    expect(await textsAt(alice)).toHaveLength(55);
  });
});

describe("limits for one peer", () => {
  it("further messages of a thread open no task and do not count as one", async () => {
    await houses.open(bob, selling, { tasksPerHour: 1 });
    const thread_id = crypto.randomUUID();
    for (const content of ["one", "two", "three"]) {
      await tell(alice, "bob", content, { thread_id });
      await houses.settle();
    }
    await tell(alice, "bob", "another task");
    await houses.settle();
    expect((await textsAt(alice)).sort()).toEqual(["sold: one", "sold: three", "sold: two"]);
    expect(problemsOf(bob, "mesh_bridge_limit")).toHaveLength(1);
  });

  it("the messages of a thread are limited per hour without delaying other threads", async () => {
    await houses.open(bob, selling, { messagesPerHour: 1 });
    const thread_id = crypto.randomUUID();
    for (const content of ["one", "two", "three"]) await tell(alice, "bob", content, { thread_id });
    await tell(alice, "bob", "four");
    await houses.settle();
    const hear = async () => (await textsAt(alice)).map((text) => text.replace("sold: ", "")).sort();
    expect(await hear()).toEqual(["four", "one", "two"]);
    expect(problemsOf(bob, "mesh_bridge_limit")).toEqual([
      expect.stringContaining("alice has reached the limit of messages"),
    ]);
    await houses.pass(3_600_000);
    await tell(alice, "bob", "five", { thread_id });
    await houses.settle();
    expect(await hear()).toEqual(["five", "four", "one", "two"]);
  });

  it("replies to one message wake the agent a limited number of times", async () => {
    const heard: string[] = [];
    const patient = defineSwarm({
      name: "desk",
      enableInterswarm: true,
      agents: [
        defineAgent({
          name: "clerk",
          enableEntrypoint: true,
          enableInterswarm: true,
          canCompleteTasks: true,
          commTargets: ["bob@lab"],
          run: (mail) => {
            if (mail.fromType === "user") mail.request("bob@lab", "Order", mail.body);
            else if (mail.fromType === "agent") {
              heard.push(mail.body);
              mail.request("bob@lab", "Order", "and then?");
            }
            mail.await();
          },
        }),
      ],
    });
    const desk = await houses.open(alice, patient, { messagesPerHour: 2 });
    await desk.mailroom.runtime.post({ role: "user", id: "ann" }, { body: "pears?" });
    await houses.settle();
    const [question] = await bob.store.mesh.inbox({ limit: 1 });
    if (question === undefined) throw new Error("bob was not asked");
    for (const content of ["one", "two", "three"]) {
      await bob.agent.reply(question, content);
      await houses.settle();
    }
    expect(heard).toEqual(["one", "two"]);
    expect(await textsAt(alice)).toContain("three");
    expect(problemsOf(alice, "mesh_bridge_limit")).toEqual([
      expect.stringContaining("bob has reached the limit of replies"),
    ]);
  });
});

describe("actions of agents", () => {
  it("a reply to a mesh_send message reaches the agent that sent it, in the same task", async () => {
    const porter = gate();
    const desk = defineSwarm({
      name: "desk",
      actions: meshActions({ agent: () => alice.agent }),
      agents: [
        defineAgent({
          name: "boss",
          enableEntrypoint: true,
          canCompleteTasks: true,
          commTargets: ["clerk", "porter"],
          run: (mail) => {
            if (mail.fromType === "user") {
              mail.request("clerk", "Order", mail.body);
              mail.request("porter", "Carry", "boxes");
              mail.await();
            } else if (mail.body === "asked") mail.await();
            else mail.complete(mail.body);
          },
        }),
        defineAgent({
          name: "clerk",
          commTargets: ["boss"],
          actions: ["mesh_send"],
          run: (mail) => {
            if (mail.result?.name === "mesh_send") mail.respond("boss", mail.subject, "asked");
            else if (mail.from === "boss") {
              mail.act("mesh_send", { swarm: "lab", to: "bob", content: mail.body });
            } else mail.respond("boss", mail.subject, `${mail.from} says ${mail.body}`);
          },
        }),
        defineAgent({
          name: "porter",
          commTargets: ["boss"],
          run: async (mail) => {
            await porter.opening;
            mail.reply("carried");
          },
        }),
      ],
    });
    const { mailroom } = await houses.open(alice, desk);
    await houses.open(bob, selling);
    const { outcome } = await mailroom.runtime.post({ role: "user", id: "ann" }, { body: "pears" });
    await houses.settle();
    expect((await outcome).message.message.body).toBe("bob@lab says sold: pears");
  });
});

describe("the context of a message", () => {
  it("the context of a message lists fifty members and the number of all members", async () => {
    const crowd = Array.from({ length: 200 }, (_, index) => ({
      kind: "mesh.member.put" as const,
      swarmId: lab,
      member: { ...alice.agent.context.self, agentId: `peer-${index}` },
    }));
    await bob.agent.context.commit(crowd, lab);
    const contexts: unknown[] = [];
    await houses.open(
      bob,
      shopOf((mail) => {
        contexts.push(mail.message.message.routing_info?.context);
        mail.complete("read");
      }),
    );
    await tell(alice, "bob", "hello");
    await houses.settle();
    expect(contexts).toMatchObject([
      { swarm: { members: { length: 50 }, member_count: 202 }, unread_count: 1, pending_count: 1 },
    ]);
  });
});

/** Forwards the user's question to bob in the lab, and completes with bob's answer. */
const asking = defineSwarm({
  name: "desk",
  enableInterswarm: true,
  agents: [
    defineAgent({
      name: "clerk",
      enableEntrypoint: true,
      enableInterswarm: true,
      canCompleteTasks: true,
      commTargets: ["bob@lab"],
      run: (mail) => {
        if (mail.fromType === "user" && !mail.from.startsWith("mesh/")) {
          mail.request("bob@lab", "Order", mail.body);
          mail.await();
        } else mail.complete(`${mail.from} says ${mail.body}`);
      },
    }),
  ],
});
