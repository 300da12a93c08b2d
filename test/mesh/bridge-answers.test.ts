/** Decisions G2 and G3: nothing that was asked or answered over the bridge is lost, and nobody is asked without end. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Store } from "../../src/engine/ports.js";
import { withResolvers } from "../../src/engine/runtime/waiters.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { meshActions } from "../../src/mesh/bridge/actions.js";
import { tooLong } from "../../src/mesh/message/check.js";
import { openStore } from "../../src/store/index.js";
import { type Agent, Mesh, textsAt } from "./harness.js";
import { Houses, saidIn, shopOf } from "./houses.js";

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

const selling = shopOf((mail) => mail.complete(`sold: ${saidIn(mail)}`));

/** Something to wait for, which is there at the latest when the test is over. */
function gate() {
  const { promise: opening, resolve: open } = withResolvers<void>();
  gates.push(open);
  return { opening, open };
}

/** A shop that sells when it is told to. */
function slowShop() {
  const seen: string[] = [];
  const { opening, open } = gate();
  const swarm = shopOf(async (mail) => {
    seen.push(saidIn(mail));
    await opening;
    mail.complete(`sold: ${saidIn(mail)}`);
  });
  return { seen, open, swarm };
}

const tell = (from: Agent, to: string, content: string, extras = {}) =>
  from.node.send({ swarmId: lab, to, content, extras });

describe("what a task answers", () => {
  it("of an answer that is longer than a message can be, the beginning arrives and says so", async () => {
    await houses.open(
      bob,
      shopOf((mail) => mail.complete("🍎".repeat(70_000))),
    );
    await tell(alice, "bob", "all your apples");
    await houses.settle();
    const [answer = ""] = await textsAt(alice);
    expect(answer).toMatch(/^🍎+\n\[cut here/u);
    expect([tooLong(answer, 65_536), tooLong(answer, 65_535)]).toEqual([false, true]);
  });

  it("an answer with half a character arrives with a mark in its place", async () => {
    await houses.open(
      bob,
      shopOf((mail) => mail.complete("half \ud83c an apple")),
    );
    await tell(alice, "bob", "half an apple");
    await houses.settle();
    expect(await textsAt(alice)).toEqual(["half \ufffd an apple"]);
  });

  it("an answer that cannot be written is written when it can", async () => {
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

describe("a store that is in trouble", () => {
  it("only delays what a peer said", async () => {
    const { commit, mesh: reads, tasks } = bob.store;
    // Each way to look at what came fails once: by its id, and with everything that waits.
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

describe("a mailroom that is full", () => {
  it("takes up what came meanwhile when there is room again, in its order", async () => {
    const shop = slowShop();
    await houses.open(bob, shop.swarm, { limits: { runningTasks: 1 } });
    await tell(alice, "bob", "one");
    const thread_id = crypto.randomUUID();
    await tell(alice, "bob", "two", { thread_id });
    // Long enough that it is tried once a minute by now.
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

  it("with one peer's tasks still has room for another's", async () => {
    const carol = await mesh.agent("carol");
    await carol.node.join(await alice.node.invite(lab));
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

  it("hears the reply that it waits for, though other mail of the same peer has to wait", async () => {
    const desk = await houses.open(alice, asking, { limits: { runningTasks: 1 } });
    const { outcome } = await desk.mailroom.runtime.post({ role: "user", id: "ann" }, { body: "pears?" });
    await houses.settle();
    await tell(bob, "alice", "by the way");
    const [question] = await bob.store.mesh.inbox({ limit: 1 });
    await houses.settle();
    if (question === undefined) throw new Error("bob was not asked");
    await bob.node.reply(question, "plenty");
    await houses.settle();
    expect((await outcome).message.message.body).toBe("bob@lab says plenty");
    await houses.pass(10_000);
    expect(await alice.store.mesh.queuedCount("pending", 9)).toBe(0);
  });

  it("gets through more than it can look at in one go", async () => {
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

describe("what one peer may do", () => {
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

  it("a thread takes only so many messages in an hour, and others are not held up by it", async () => {
    await houses.open(bob, selling, { messagesPerHour: 1 });
    const thread_id = crypto.randomUUID();
    for (const content of ["one", "two", "three"]) await tell(alice, "bob", content, { thread_id });
    await tell(alice, "bob", "four");
    await houses.settle();
    const hear = async () => (await textsAt(alice)).map((text) => text.replace("sold: ", "")).sort();
    expect(await hear()).toEqual(["four", "one", "two"]);
    expect(problemsOf(bob, "mesh_bridge_limit")).toEqual([expect.stringContaining("alice has written")]);
    await houses.pass(3_600_000);
    await tell(alice, "bob", "five", { thread_id });
    await houses.settle();
    expect(await hear()).toEqual(["five", "four", "one", "two"]);
  });

  it("whoever was asked once wakes the agent only so many times with replies", async () => {
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
      await bob.node.reply(question, content);
      await houses.settle();
    }
    expect(heard).toEqual(["one", "two"]);
    expect(await textsAt(alice)).toContain("three");
    expect(problemsOf(alice, "mesh_bridge_limit")).toEqual([expect.stringContaining("bob has replied")]);
  });
});

describe("what agents say to peers", () => {
  it("a reply to what mesh_send has sent comes to the agent that sent it, in that task", async () => {
    const porter = gate();
    const desk = defineSwarm({
      name: "desk",
      actions: meshActions({ node: () => alice.node }),
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
  it("names fifty members of a crowd, and says how many there are", async () => {
    const crowd = Array.from({ length: 200 }, (_, index) => ({
      kind: "mesh.member.put" as const,
      swarmId: lab,
      member: { ...alice.node.core.self, agentId: `peer-${index}` },
    }));
    await bob.node.core.commit(crowd, lab);
    const contexts: unknown[] = [];
    await houses.open(
      bob,
      shopOf((mail) => {
        contexts.push(JSON.parse(mail.body.split("\n")[3] ?? ""));
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

/** Asks bob in the lab what its user asks it, and completes with bob's answer. */
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
        } else mail.complete(`${mail.from} says ${saidIn(mail)}`);
      },
    }),
  ],
});
