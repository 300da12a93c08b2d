import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { act, ask, complete, respond, withId } from "../../../test/kit/answers.js";
import { action, agent, office, swarm } from "../../../test/kit/swarms.js";
import { TestTask } from "../../../test/kit/test-task.js";
import { createAgentAddress } from "../../mail/address.js";
import { buildRequest } from "../../mail/build.js";
import { comesBefore, enqueue, historyOf, isFromPerson, type MailboxItem, wasTaken } from "./state.js";

const message = buildRequest({
  id: "00000000-0000-4000-8000-000000000001",
  timestamp: "2026-03-02T08:15:30.000Z",
  taskId: "t",
  sender: createAgentAddress("ann"),
  recipient: createAgentAddress("bob"),
  subject: "s",
  body: "b",
});

describe("mailboxes", () => {
  it("[MAIL-PRIO-01, MAIL-PRIO-02] mail is served by tier, then position, then number, in any order of arrival", () => {
    const mails = fc.uniqueArray(
      fc.record({ number: fc.nat(50), tier: fc.integer({ min: 1, max: 5 }), order: fc.nat(50) }),
      { selector: (mail) => mail.number },
    );
    fc.assert(
      fc.property(mails, (given) => {
        const mailbox: MailboxItem[] = [];
        for (const mail of given) enqueue(mailbox, { ...mail, message, manual: undefined, asker: undefined });
        const sorted = given.toSorted((a, b) => a.tier - b.tier || a.order - b.order || a.number - b.number);
        expect(mailbox.map((mail) => mail.number)).toEqual(sorted.map((mail) => mail.number));
        for (let at = 1; at < mailbox.length; at++) {
          const [before, after] = [mailbox[at - 1], mailbox[at]];
          if (before !== undefined && after !== undefined) expect(comesBefore(before, after)).toBe(true);
        }
      }),
    );
  });

  it("users and admins count as people, agents and the system do not", () => {
    expect(isFromPerson(message)).toBe(false);
    const from = (address_type: "user" | "admin" | "system") => ({
      ...message,
      message: { ...message.message, sender: { address_type, address: "x" } },
    });
    expect(isFromPerson(from("user"))).toBe(true);
    expect(isFromPerson(from("admin"))).toBe(true);
    expect(isFromPerson(from("system"))).toBe(false);
  });

  it("a broadcast counts as taken once one agent has taken it, even if that agent ignores it", () => {
    const task = new TestTask(office(), { type: "broadcast" });
    const [mail] = task.agent("boss").mailbox;
    if (mail === undefined) throw new Error("the boss has no mail");
    expect(wasTaken(task.state, mail)).toBe(false);
    task.turn("ann", act("ignore_broadcast"));
    expect(wasTaken(task.state, mail)).toBe(true);
  });
});

describe("an agent's history", () => {
  it("an ending is never placed between a call and its result", () => {
    const task = new TestTask(office({ actions: [action("dig")] }));
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"));
    task.post("stop");
    task.turn("boss", complete("stopped"));
    expect(historyOf(task.state, "ann").map((item) => item.kind)).toEqual(["message", "answer"]);
    task.finish("ann");
    expect(historyOf(task.state, "ann").map((item) => item.kind)).toEqual([
      "message",
      "answer",
      "result",
      "message",
    ]);
  });

  it("endings appear where they happened", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"));
    task.turn("ann", respond("boss", "1"));
    task.turn("boss", complete("first"));
    task.post("again");
    task.turn("boss", ask("ann", "two"));
    task.turn("ann", respond("boss", "2"));
    const bodies = historyOf(task.state, "ann").flatMap((item) =>
      item.kind === "message" ? [item.message.message.body] : [],
    );
    expect(bodies).toEqual(["one", "first", "two"]);
  });

  it("endings before a compaction are part of its summary", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"));
    task.turn("ann", respond("boss", "1"));
    task.turn("boss", complete("first"));
    task.post("again", { to: ["ann"] });
    task.answer("ann", {
      calls: [{ id: "1", name: "send_response", args: { target: "boss", subject: "s", body: "b" } }],
      compaction: { upTo: task.state.number, summary: "it was done once" },
    });
    expect(historyOf(task.state, "ann").map((item) => item.kind)).toEqual([
      "summary",
      "message",
      "answer",
      "result",
    ]);
  });

  it("an agent with the name of its swarm also sees the system's endings", () => {
    const boss = agent("boss", { targets: ["desk"], supervisor: true, entrypoint: true });
    const task = new TestTask(swarm([boss, agent("desk", { targets: ["boss"] })]));
    task.turn("boss", withId("1", ask("desk", "hello")));
    task.cancel();
    expect(historyOf(task.state, "desk")).toHaveLength(1);
  });

  it("an agent without turns has only endings in its history", () => {
    const task = new TestTask(office());
    expect(historyOf(task.state, "bob")).toEqual([]);
  });
});
