/** Mail to other swarms: the runtime's part of the delivery. */
import { expect, it } from "vitest";
import { ask, complete, wait } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { openWorld, ULLA, type World } from "../../../test/kit/simulated-world.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import type { JournalKey } from "../../journal/index.js";
import type { Carrier, DeliveryResult, OutgoingMail } from "../carrier.js";
import { settleMail } from "./outbound-mail.js";

function office() {
  const fakeAgents = new FakeAgents();
  const boss = agent("boss", {
    targets: ["x@north"],
    supervisor: true,
    entrypoint: true,
    interswarm: true,
    run: fakeAgents.mind("boss"),
  });
  return { fakeAgents, definition: swarm([boss]) };
}

/** Stores nothing, so that the test decides the delivery results. */
class Post implements Carrier {
  readonly left: OutgoingMail[] = [];
  owns(name: string): boolean {
    return name === "north";
  }
  rows(_: OutgoingMail): readonly [] | DeliveryResult {
    return [];
  }
  wake(mails: readonly OutgoingMail[]): void {
    this.left.push(...mails);
  }
}

function carriedIn(world: World, key: JournalKey) {
  return world.store.entriesOf(key).filter((entry) => entry.t === "carried");
}

it("mail to another swarm goes to the carrier that owns the name once it is durable, and its answer is awaited", async () => {
  const { fakeAgents, definition } = office();
  const durable: boolean[] = [];
  const post = new (class extends Post {
    override wake(mails: readonly OutgoingMail[]) {
      super.wake(mails);
      for (const { task, message } of mails) {
        const entries = world.store.entriesOf(task.key);
        durable.push(entries.some((entry) => entry.t === "sent" && entry.message.id === message.id));
      }
    }
  })();
  const world = await openWorld(definition, { carriers: [post] });
  const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
  (await fakeAgents.next("boss")).answer(ask("x@north", "how many?"), wait());
  await world.settle();
  expect(post.left).toMatchObject([
    {
      swarm: "north",
      message: { message: { body: "how many?" } },
      task: { owner: "user:ulla@desk" },
      instance: ULLA,
      hops: 1,
    },
  ]);
  expect(durable).toEqual([true]);
  const [mail] = post.left;
  if (mail === undefined) throw new Error("it has left");
  const place = { key: posted.key, messageId: mail.message.id, swarm: "north" };
  const accepted: DeliveryResult = { ok: true, contributors: ["swarm:desk@north"] };
  await settleMail(world, place, accepted, []);
  // Reporting the result twice changes nothing.
  await settleMail(world, place, { ok: false, reason: "lost" }, []);
  await world.runtime.read(posted.key, (state) => {
    expect(state.contributors).toContain("swarm:desk@north");
    expect(state.outbound).toEqual([]);
    expect(state.idleTold).toBe(false);
  });
  expect(carriedIn(world, posted.key)).toMatchObject([{ ok: true }]);
});

it.each<[string, Carrier["rows"]]>([
  ["refuses it", () => ({ ok: false, reason: "nobody home" })],
  [
    "[ENGINE-C-1] throws",
    () => {
      throw new Error("nobody home");
    },
  ],
])("an agent is notified when the carrier of its mail %s", async (_, rows) => {
  const { fakeAgents, definition } = office();
  const world = await openWorld(definition, { carriers: [{ owns: () => true, rows }] });
  await world.runtime.post(ULLA, { body: "go" });
  (await fakeAgents.next("boss")).answer(ask("x@north", "how many?"), wait());
  const told = await fakeAgents.next("boss");
  expect(told.turn.messages[0].message.subject).toBe("::router_error::");
  expect(told.turn.messages[0].message.body).toContain("nobody home");
});

it("[MAIL-ROUTE-05, MAIL-ERR-04] an agent is notified when no carrier owns the swarm name", async () => {
  const { fakeAgents, definition } = office();
  const world = await openWorld(definition);
  await world.runtime.post(ULLA, { body: "go" });
  (await fakeAgents.next("boss")).answer(ask("x@north", "how many?"), wait());
  const told = await fakeAgents.next("boss");
  expect(told.turn.messages[0].message.body).toContain("no known connection to swarm 'north'");
});

it("[ENGINE-C-1] a carrier that fails when its mail is durable is reported, and the user gets the answer", async () => {
  const { fakeAgents, definition } = office();
  const post = new (class extends Post {
    override wake() {
      throw new Error("out of order");
    }
  })();
  const world = await openWorld(definition, { carriers: [post] });
  const { outcome, key } = await world.runtime.post(ULLA, { body: "go" });
  (await fakeAgents.next("boss")).answer(ask("x@north", "by the way"), complete("done"));
  expect((await outcome).message.message.body).toBe("done");
  for (const report of world.reports) expect(report).toMatchObject({ code: "carrier_failed", task: key });
  expect(world.reports).not.toEqual([]);
});

it("mail without stored rows is sent again under the same id when the next process loads its task", async () => {
  const { fakeAgents, definition } = office();
  const post = new Post();
  const world = await openWorld(definition, { carriers: [post] });
  await world.runtime.post(ULLA, { body: "go" });
  (await fakeAgents.next("boss")).answer(ask("x@north", "how many?"), wait());
  await world.settle();
  await world.crash();
  await world.settle();
  const ids = post.left.map(({ message }) => message.id);
  expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
});

it.each<[string, DeliveryResult | "waiting", { left: number; carried: object[] }]>([
  ["waits in the outbox is sent once", "waiting", { left: 1, carried: [] }],
  [
    "was delivered is reported to its task",
    { ok: true, contributors: ["swarm:desk@north"] },
    { left: 1, carried: [{ ok: true, contributors: ["swarm:desk@north"] }] },
  ],
  [
    "was refused is reported to its task",
    { ok: false, reason: "nobody home" },
    { left: 1, carried: [{ ok: false, reason: "nobody home" }] },
  ],
])("after a restart, mail that the carrier has stored and that %s", async (_, found, expected) => {
  const { fakeAgents, definition } = office();
  const post = new (class extends Post {
    async find() {
      return found;
    }
  })();
  const world = await openWorld(definition, { carriers: [post] });
  const { key } = await world.runtime.post(ULLA, { body: "go" });
  (await fakeAgents.next("boss")).answer(ask("x@north", "how many?"), wait());
  await world.settle();
  await world.crash();
  await world.settle();
  expect(post.left).toHaveLength(expected.left);
  expect(carriedIn(world, key)).toMatchObject(expected.carried);
});

it("mail is queued as soon as the carrier can look it up", async () => {
  const { fakeAgents, definition } = office();
  let failures = 2;
  const post = new (class extends Post {
    async find(): Promise<undefined> {
      if (failures-- > 0) throw new Error("busy");
    }
  })();
  const world = await openWorld(definition, { carriers: [post] });
  await world.runtime.post(ULLA, { body: "go" });
  (await fakeAgents.next("boss")).answer(ask("x@north", "how many?"), wait());
  await world.settle();
  await world.crash();
  for (let second = 0; second < 3; second++) await world.pass(1_000);
  expect(post.left).toHaveLength(2);
  expect(world.reports.map(({ code }) => code)).toEqual(["delivery_late", "delivery_late"]);
});
