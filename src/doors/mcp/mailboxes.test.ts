import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defineAgent, defineSwarm, Mailroom } from "../../index.js";
import { Mailboxes } from "./mailboxes.js";

const desk = () =>
  defineSwarm({
    name: "desk",
    agents: [
      defineAgent({
        name: "lead",
        enableEntrypoint: true,
        canCompleteTasks: true,
        commTargets: ["coder"],
        run: (mail) => {
          const answer = mail.answerFrom("coder");
          if (answer === undefined) mail.request("coder", "Code", mail.body);
          else mail.complete(answer);
        },
      }),
      defineAgent({ name: "coder", commTargets: ["lead"], remote: true }),
    ],
  });

let mailroom: Mailroom;
let mailboxes: Mailboxes;
const never = new AbortController().signal;

beforeEach(async () => {
  mailroom = await Mailroom.open({ swarm: desk(), data: false });
  mailboxes = new Mailboxes(mailroom);
});
afterEach(() => mailroom.close({ grace: 0 }));

/** Processes the lent or next message. */
async function serveOne(): Promise<void> {
  const mail = await mailboxes.read("coder", never);
  const args = { target: "lead", subject: "Re", body: `did ${mail?.message.message.body}` };
  await mailboxes.answer("coder", {}, [{ id: crypto.randomUUID(), name: "send_response", args }]);
}

async function outcomes(bodies: readonly string[]): Promise<() => Promise<string[]>> {
  const posted = await Promise.all(bodies.map((body) => mailroom.user("ann").post(body)));
  return async () => {
    const ended = await Promise.all(posted.map(({ outcome }) => outcome));
    return ended.map(({ message }) => message.message.body);
  };
}

describe("concurrent reads", () => {
  it("get the same message, and none is lost", async () => {
    const reads = [mailboxes.read("coder", never), mailboxes.read("coder", never)];
    const answers = await outcomes(["first", "second"]);
    const [one, other] = await Promise.all(reads);
    expect(one?.message.id).toBe(other?.message.id);
    await serveOne();
    await serveOne();
    expect(await answers()).toEqual(["did first", "did second"]);
  });

  it("continue when one of them is aborted", async () => {
    const leaving = new AbortController();
    const left = mailboxes.read("coder", leaving.signal);
    const stayed = mailboxes.read("coder", never);
    leaving.abort();
    expect(await left).toBeUndefined();
    const answers = await outcomes(["first"]);
    expect((await stayed)?.message.message.body).toBe("first");
    await serveOne();
    expect(await answers()).toEqual(["did first"]);
  });

  it("that are aborted while a message arrives leave it to the next read", async () => {
    // Abort at every stage of the delivery: each read is aborted one step later than the previous one.
    const bodies = Array.from({ length: 30 }, (_, number) => `${number}`);
    const answers = await outcomes(bodies);
    for (const steps of bodies.keys()) {
      const leaving = new AbortController();
      const left = mailboxes.read("coder", leaving.signal);
      for (let step = 0; step < steps; step++) await Promise.resolve();
      leaving.abort();
      await serveOne();
      await left;
    }
    expect(await answers()).toEqual(bodies.map((body) => `did ${body}`));
  });
});
