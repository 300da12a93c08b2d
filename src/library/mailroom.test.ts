import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defineAction } from "../actions/index.js";
import type { AuditPut } from "../engine/index.js";
import { defineAgent, defineSwarm } from "../swarm/index.js";
import { Mailroom } from "./mailroom.js";

const echo = () =>
  defineSwarm({
    name: "echo",
    agents: [
      defineAgent({
        name: "echo",
        enableEntrypoint: true,
        canCompleteTasks: true,
        commTargets: [],
        run: (mail) => mail.complete(`you said: ${mail.body}`),
      }),
    ],
  });

const ASK = defineAction({
  name: "ask_owner",
  description: "Asks the owner",
  parameters: { type: "object", properties: { question: { type: "string" } }, required: ["question"] },
  run: () => "never run: it is a breakpoint",
});

const asking = () =>
  defineSwarm({
    name: "asking",
    breakpointTools: ["ask_owner"],
    agents: [
      defineAgent({
        name: "clerk",
        enableEntrypoint: true,
        canCompleteTasks: true,
        commTargets: [],
        actions: [ASK],
        run: (mail) => {
          const answer = mail.results.at(-1);
          if (answer !== undefined) mail.complete(`the owner says ${answer.content}`);
          else mail.act("ask_owner", { question: mail.body });
        },
      }),
    ],
  });

describe("Mailroom", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "mailroom-library-"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("answers, and remembers the task after it was closed and opened again", async () => {
    const first = await Mailroom.open({ swarm: echo(), data: directory });
    const answer = await first.user("ann").ask("hello");
    expect(answer).toMatchObject({ status: "completed", response: "you said: hello" });
    await first.close();

    const second = await Mailroom.open({ swarm: echo(), data: directory });
    const task = await second.user("ann").requireTask(answer.taskId);
    expect(await task.status()).toBe("completed");
    expect(await task.ask("again")).toMatchObject({ status: "completed", response: "you said: again" });
    const history = await task.history("echo");
    expect(history.filter((item) => item.kind === "answer")).toHaveLength(2);
    await second.close();
  });

  it("an agent that gathers answers is not left waiting for one that failed", async () => {
    const desk = defineSwarm({
      name: "desk",
      agents: [
        defineAgent({
          name: "boss",
          enableEntrypoint: true,
          canCompleteTasks: true,
          commTargets: ["ann", "bob"],
          run: (mail) => {
            if (mail.fromType === "user")
              for (const { address } of mail.peers) mail.request(address, "Count", "?");
            else if (mail.waitingFor.length > 0) mail.await();
            else mail.complete(`ann: ${mail.answerFrom("ann")}, bob: ${mail.answerFrom("bob") ?? "failed"}`);
          },
        }),
        defineAgent({ name: "ann", commTargets: ["boss"], run: (mail) => mail.reply("three") }),
        defineAgent({
          name: "bob",
          commTargets: ["boss"],
          run: () => {
            throw new Error("cannot count");
          },
        }),
      ],
    });
    const mailroom = await Mailroom.open({ swarm: desk, data: false });
    expect(await mailroom.user("ulla").ask("how many?")).toMatchObject({
      response: "ann: three, bob: failed",
    });
    await mailroom.close();
  });

  it("keeps nothing on disk when told so", async () => {
    const mailroom = await Mailroom.open({ swarm: echo(), data: false });
    expect((await mailroom.user("ann").ask("hello")).status).toBe("completed");
    await mailroom.close();
  });

  it("streams a round from its message to its end, and takes a stream up after any event", async () => {
    const mailroom = await Mailroom.open({ swarm: echo(), data: false });
    const ann = mailroom.user("ann");
    const seen = [];
    for await (const event of ann.stream("hello", { taskId: "t" })) seen.push(event);
    expect(seen[0]?.event).toBe("new_message");
    expect(seen.at(-1)).toMatchObject({ event: "task_complete", data: { response: "you said: hello" } });
    const task = await ann.requireTask("t");
    for (const [index, { id }] of seen.entries()) {
      const rest = [];
      for await (const event of task.events({ after: id })) rest.push(event.id);
      expect(rest).toEqual(seen.slice(index + 1).map((event) => event.id));
    }
    await expect(task.events({ after: "nonsense" }).next()).rejects.toThrow("not the id of an event");
    await mailroom.close();
  });

  it("stops at a breakpoint until a person answers, also after a restart", async () => {
    const first = await Mailroom.open({ swarm: asking(), data: directory });
    const paused = await first.user("ann").ask("may I?", { taskId: "t" });
    if (paused.status !== "paused") throw new Error(`the task is ${paused.status}`);
    expect(paused.breakpoints).toMatchObject([{ name: "ask_owner", args: { question: "may I?" } }]);
    await first.close();

    const second = await Mailroom.open({ swarm: asking(), data: directory });
    const task = await second.user("ann").requireTask("t");
    await expect(task.answer([{ callId: "other", content: "yes" }])).rejects.toMatchObject({
      code: "unknown_calls",
    });
    await expect(task.answer([])).rejects.toMatchObject({ code: "missing_results" });
    expect(await task.answer("yes")).toMatchObject({ status: "completed", response: "the owner says yes" });
    await expect(task.answer("no")).rejects.toMatchObject({ code: "not_paused" });
    await second.close();
  });

  it("[MAIL-INST-01] shows a caller no task of another, though they use the same id", async () => {
    const mailroom = await Mailroom.open({ swarm: echo(), data: false });
    await mailroom.user("ann").ask("ann's secret", { taskId: "same" });
    expect(await mailroom.user("bob").task("same")).toBeUndefined();
    expect(await mailroom.admin("ann").task("same")).toBeUndefined();
    expect((await mailroom.user("bob").tasks()).tasks).toEqual([]);
    await mailroom.user("bob").ask("bob's own", { taskId: "same" });
    const record = await (await mailroom.user("bob").requireTask("same")).record();
    expect(JSON.stringify(record)).not.toContain("ann");
    await mailroom.close();
  });

  it("lists tasks newest first, by status and in pages, with a title", async () => {
    const mailroom = await Mailroom.open({ swarm: asking(), data: false });
    const ann = mailroom.user("ann");
    for (const taskId of ["a", "b", "c"]) await ann.ask(`question ${taskId}`, { taskId });
    await (await ann.requireTask("b")).answer("yes");
    const page = await ann.tasks({ limit: 2 });
    expect(page.tasks.map((task) => task.task_id)).toEqual(["c", "b"]);
    const rest = await ann.tasks({ limit: 2, ...(page.nextCursor && { cursor: page.nextCursor }) });
    expect(rest.tasks.map((task) => task.title)).toEqual(["question a"]);
    expect((await ann.tasks({ status: "completed" })).tasks.map((task) => task.task_id)).toEqual(["b"]);
    await mailroom.close();
  });

  it("puts an override between calls and actions", async () => {
    const greet = defineAction({
      name: "greet",
      description: "Greets",
      parameters: { type: "object", properties: {} },
      run: () => "hello",
    });
    const swarm = defineSwarm({
      name: "greeting",
      agents: [
        defineAgent({
          name: "greeter",
          enableEntrypoint: true,
          canCompleteTasks: true,
          commTargets: [],
          actions: [greet],
          run: (mail) => (mail.result ? mail.complete(mail.result.content) : mail.act(greet, {})),
        }),
      ],
    });
    const mailroom = await Mailroom.open({
      swarm,
      data: false,
      actionOverride: async (call, { agent }, next) => `${agent} ${call.name}: ${await next()}`,
    });
    expect((await mailroom.user("ann").ask("go")).response).toBe("greeter greet: hello");
    await mailroom.close();
  });

  it("passes an instance's parameters to its own agents only", async () => {
    const swarm = defineSwarm({
      name: "params",
      agents: [
        defineAgent({
          name: "agent",
          enableEntrypoint: true,
          canCompleteTasks: true,
          commTargets: [],
          run: (mail) => mail.complete(String(mail.params.token)),
        }),
      ],
    });
    const mailroom = await Mailroom.open({ swarm, data: false });
    expect((await mailroom.user("ann", { params: { token: "s3cret" } }).ask("?")).response).toBe("s3cret");
    expect((await mailroom.user("bob").ask("?")).response).toBe("undefined");
    await mailroom.close();
  });

  it("removes finished tasks beyond what retention keeps, and their ids are unused again", async () => {
    const mailroom = await Mailroom.open({ swarm: echo(), data: false, retention: { maxTasks: 2 } });
    const ann = mailroom.user("ann");
    for (const taskId of ["a", "b", "c", "d"]) await ann.ask("hi", { taskId });
    expect(await mailroom.sweep()).toBe(2);
    expect((await ann.tasks()).tasks.map((task) => task.task_id)).toEqual(["d", "c"]);
    expect(await ann.task("a")).toBeUndefined();
    const { opened } = await ann.post("anew", { taskId: "a" });
    expect(opened).toBe(true);
    await mailroom.close();
  });

  it("removes records of the audit log that are older than retention keeps, however many", async () => {
    const auditAge = 24 * 60 * 60 * 1_000;
    const mailroom = await Mailroom.open({ swarm: echo(), data: false, retention: { auditAge } });
    const early = {
      at: Date.now() - auditAge - 1,
      actor: "admin:early",
      action: "budget",
      right: "admin",
      key: "",
      taskId: "",
      owner: "",
      details: {},
    } as const;
    // More than one write removes.
    const rows: AuditPut[] = Array.from({ length: 10_001 }, () => ({ kind: "audit.put", record: early }));
    await mailroom.store.commit({ appends: [], rows });
    await mailroom.budgets.setForDay({ role: "admin", id: "root" }, "day", { maxCalls: 5 });
    await mailroom.sweep();
    const kept = await mailroom.store.approvals?.audit({ limit: 20_000 });
    expect(kept?.map(({ actor }) => actor)).toEqual(["admin:root"]);
    await mailroom.close();
  });

  it("runs a task by hand, one agent at a time", async () => {
    const player = (name: string, other: string, lead: boolean) =>
      defineAgent({
        name,
        enableEntrypoint: lead,
        canCompleteTasks: lead,
        commTargets: [other],
        run: (mail) => `${name} heard ${mail.messages.map((message) => message.message.body).join("+")}`,
      });
    const swarm = defineSwarm({
      name: "game",
      agents: [player("red", "blue", true), player("blue", "red", false)],
    });
    const mailroom = await Mailroom.open({ swarm, data: false });
    const { task } = await mailroom.user("ann").post("begin", { manual: true });
    const first = await task.step("red", { payload: "your turn" });
    expect(first?.message.body).toBe("red heard begin+your turn");
    const second = await task.step("blue", { payload: "yours" });
    expect(second?.message.body).toBe("blue heard red heard begin+your turn+yours");
    await task.cancel();
    expect(await task.status()).toBe("cancelled");
    await mailroom.close();
  });

  it("lends mail of a remote agent and takes its answer once", async () => {
    const swarm = defineSwarm({
      name: "desk",
      agents: [
        defineAgent({
          name: "lead",
          enableEntrypoint: true,
          canCompleteTasks: true,
          commTargets: ["coder"],
          run: (mail) => {
            const answer = mail.answerFrom("coder");
            if (answer !== undefined) mail.complete(answer);
            else mail.request("coder", "Code", mail.body);
          },
        }),
        defineAgent({ name: "coder", commTargets: ["lead"], remote: true }),
      ],
    });
    const mailroom = await Mailroom.open({ swarm, data: directory });
    const { task, outcome } = await mailroom.user("ann").post("write it");
    const coder = mailroom.remoteAgent("coder");
    const first = await coder.next();
    if (first === undefined) throw new Error("nothing was lent");
    await coder.release(first);
    const second = await coder.next();
    if (second === undefined) throw new Error("nothing was lent again");
    expect(second).toMatchObject({ attempt: first.attempt + 1, message: { id: first.message.id } });
    const answer = {
      calls: [{ id: "1", name: "send_response", args: { target: "lead", subject: "Re", body: "done" } }],
    };
    await expect(coder.answer(first, answer)).rejects.toMatchObject({ code: "stale_attempt" });
    await coder.answer(second, answer);
    await expect(coder.answer(second, answer)).rejects.toMatchObject({ code: "stale_attempt" });
    expect((await outcome).message.message.body).toBe("done");
    expect(await task.status()).toBe("completed");
    await mailroom.close();
  });
});
