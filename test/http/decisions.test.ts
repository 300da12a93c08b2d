/** Calls that wait for approval, over HTTP: who decides, what runs, and what is refused. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineAction } from "../../src/actions/index.js";
import { MailClient } from "../../src/client/index.js";
import { defineAgent } from "../../src/swarm/agent.js";
import { defineSwarm } from "../../src/swarm/define.js";
import { fieldOf, type Harness, startServer } from "./harness.js";

const ANN = "user-token-ann";
const BOB = "user-token-bob";
const EVE = "user-token-eve";

/** The amounts that were really paid. */
const paid: number[] = [];
let server: Harness;
beforeAll(async () => {
  const pay = defineAction({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ euros: z.number().max(500) }),
    approval: ({ euros }) => euros > 10,
    run: ({ euros }) => {
      paid.push(euros);
      return `paid ${euros}`;
    },
  });
  const swarm = defineSwarm({
    name: "shop",
    agents: [
      defineAgent({
        name: "desk",
        enableEntrypoint: true,
        canCompleteTasks: true,
        actions: [pay],
        run: (mail) => {
          const { result } = mail;
          if (result === undefined)
            for (const euros of mail.body.split(" ")) mail.act("pay", { euros: Number(euros) });
          else
            mail.complete(
              mail.history.flatMap((item) => (item.kind === "result" ? [item.content] : [])).join("; "),
            );
        },
      }),
    ],
  });
  server = await startServer({ room: { swarm } });
});
afterAll(() => server.close());

const as = (token: string) => new MailClient(server.url, { token });

async function waiting(taskId: string, amounts: string) {
  const answer = await as(ANN).postMessage(amounts, { taskId });
  expect(answer.status).toBe("paused");
  const { key = "" } = await as(ANN).getTask(taskId);
  const calls = (answer.approvals ?? []).map(({ call_id }) => call_id);
  return { key, calls, answer };
}

async function responseOf(taskId: string): Promise<string> {
  for await (const event of as(ANN).taskEvents(taskId, { live: "round" })) {
    if (event.data.status === "completed") return event.data.response ?? "";
  }
  throw new Error("the task did not complete");
}

let cases = 0;

describe("a call that waits for approval", () => {
  it("[AGT-APPR-05] is shown with its arguments, approved by a named second user, and then run by the server", async () => {
    const { key, calls, answer } = await waiting("named", "5 50");
    expect(answer.approvals).toMatchObject([{ name: "pay", arguments: '{"euros":50}' }]);
    expect(await server.call("/tasks/named", { token: ANN })).toMatchObject({
      body: { status: "paused", approvals: [{ agent: "desk", call_id: calls[0], name: "pay" }] },
    });
    const decisions = [{ call_id: calls[0] ?? "", decision: "approve" }] as const;
    await expect(as(BOB).decideApproval(key, decisions)).rejects.toMatchObject({ status: 404 });
    await as(ANN).nameApprovers("named", ["user:user-bob"]);
    const found = fieldOf((await server.call("/approvals", { token: BOB })).body, "approvals", "0");
    expect(found).toMatchObject({ key, right: "approver", calls: [{ kind: "approval", agent: "desk" }] });
    await expect(as(EVE).decideApproval(key, decisions)).rejects.toMatchObject({ status: 404 });
    expect(paid).not.toContain(50);
    await as(BOB).decideApproval(key, decisions);
    expect(await responseOf("named")).toBe("paid 5; paid 50");
    expect(paid.filter((euros) => euros === 50)).toEqual([50]);
    const audit = [];
    for await (const record of as(ANN).audit({ key })) audit.push(record);
    expect(audit[0]).toMatchObject({
      actor: "user:user-bob",
      action: "answer",
      right: "approver",
      details: { decisions: [{ call: calls[0], decision: "approve" }] },
    });
  });

  it("[AGT-APPR-02] runs with changed arguments that are valid, or is rejected with a reason", async () => {
    const { key, calls } = await waiting("changed", "60 70");
    const [first = "", second = ""] = calls;
    const wrong = [{ call_id: first, decision: "approve", arguments: { euros: 900 } }] as const;
    await expect(as(ANN).decideApproval(key, wrong)).rejects.toMatchObject({
      status: 400,
      code: "bad_arguments",
    });
    const open = async () => (await as(ANN).observe.getDigests(["changed"]))[0]?.open;
    expect(await open()).toMatchObject([
      { kind: "approval", call_id: first, name: "pay", arguments: '{"euros":60}' },
      { kind: "approval", call_id: second },
    ]);
    await as(ANN).decideApproval(key, [{ call_id: first, decision: "approve", arguments: { euros: 6 } }]);
    expect((await as(ANN).getTask("changed")).status).toBe("paused");
    expect(await open()).toMatchObject([{ call_id: second }]);
    await as(ANN).decideApproval(key, [{ call_id: second, decision: "reject", reason: "too much" }]);
    expect(await responseOf("changed")).toBe(
      'approved with changed arguments: {"euros":6}\n\npaid 6; rejected: too much',
    );
    expect(paid).not.toContain(60);
    expect(paid).not.toContain(70);
    expect(await open()).toEqual([]);
  });

  it.each([
    [{ results: "yes, go ahead" }, 409, "approval_needed"],
    [{ decisions: [] }, 400, undefined],
    [{ decisions: [{ call_id: "x", decision: "approve" }] }, 400, "unknown_calls"],
    [{ decisions: [{ call_id: "x", decision: "yes" }] }, 400, undefined],
    [{ decisions: [{ call_id: "x", decision: "reject", arguments: {} }] }, 400, "bad_request"],
    [{ decisions: [{ call_id: "x", decision: "approve" }], results: "yes" }, 400, "bad_request"],
    [{}, 400, undefined],
  ])("[AGT-APPR-06] is not decided by %j", async (json, status, code) => {
    const taskId = `refused-${++cases}`;
    const { key } = await waiting(taskId, "80");
    const reply = await server.call(`/approvals/${key}`, { token: ANN, json });
    expect(reply.status).toBe(status);
    if (code !== undefined) expect(reply.text).toContain(code);
    expect((await as(ANN).getTask(taskId)).status).toBe("paused");
    expect(paid).not.toContain(80);
  });
});
