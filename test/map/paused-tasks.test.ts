/** A paused task as its owner sees it over MAP. */
import { afterEach, expect, it } from "vitest";
import { defineAction, defineAgent, defineSwarm } from "../../src/index.js";
import { BridgeHarness } from "./bridge-harness.js";
import type { RawClient } from "./harness.js";

let bridge: BridgeHarness;
afterEach(() => bridge.stop());

const sign = defineAction({
  name: "sign",
  description: "Asks the owner to sign.",
  parameters: { type: "object", properties: { what: { type: "string" } } },
  run: () => "never run: it is a breakpoint",
});

function desk() {
  const boss = defineAgent({
    name: "boss",
    enableEntrypoint: true,
    canCompleteTasks: true,
    actions: [sign],
    run: (mail) => {
      const results = mail.results.map(({ content }) => content);
      if (results.length > 0) return mail.complete(`signed: ${results.join(", ")}`);
      for (const what of mail.body.split(" ")) mail.act(sign, { what });
    },
  });
  return defineSwarm({ name: "desk", breakpointTools: ["sign"], agents: [boss] });
}

async function pausedTask(ann: RawClient, body: string): Promise<string> {
  await ann.call("map/subscribe", {
    filter: { eventTypes: ["mailroom.conversation.status", "mail.closed"] },
  });
  const { outcome } = await bridge.mailroom.user("ann").post(body);
  await outcome;
  const { conversations } = await ann.call("mail/list", { filter: { status: ["paused"] } });
  return (conversations as { id: string }[])[0]?.id ?? "";
}

it("[MAP-F-10] is a typed event with its open calls, and a text turn answers the only one", async () => {
  bridge = await BridgeHarness.start({ swarm: desk() });
  const ann = await bridge.client("user:ann");
  const conversationId = await pausedTask(ann, "contract");
  await ann.find(({ method }) => method === "map/event");
  const open = [{ callId: expect.any(String), name: "sign", arguments: { what: "contract" } }];
  expect(ann.events()[0]?.event).toMatchObject({
    type: "mailroom.conversation.status",
    data: { conversationId, status: "paused", openCalls: open },
  });
  expect(await ann.call("mail/get", { conversationId })).toMatchObject({
    conversation: { status: "paused", metadata: { open_calls: open } },
  });
  const turn = { conversationId, contentType: "text", content: { text: "yes" } };
  expect(await ann.call("mail/turn", turn)).toMatchObject({
    turn: { contentType: "x-tool-call", content: { name: "sign", ok: true, result: "yes" } },
  });
  await ann.find(({ params }) => JSON.stringify(params)?.includes("mail.closed") === true);
  const { turns } = await ann.call("mail/turns/list", { conversationId, order: "desc", limit: 1 });
  expect(turns).toMatchObject([{ content: { text: "signed: yes" } }]);
  expect((await ann.call("mail/get", { conversationId })).conversation).not.toHaveProperty(
    "metadata.open_calls",
  );
});

it("[AGT-APPR-06] text approves nothing over MAP; structured decisions run or reject the call", async () => {
  const paid: unknown[] = [];
  const pay = defineAction({
    name: "pay",
    description: "Pays.",
    parameters: { type: "object", properties: { what: { type: "string" } } },
    approval: true,
    run: (args) => {
      paid.push(args);
      return "paid";
    },
  });
  const boss = defineAgent({
    name: "boss",
    enableEntrypoint: true,
    canCompleteTasks: true,
    actions: [pay],
    run: (mail) => {
      const results = mail.results.map(({ content }) => content);
      if (results.length > 0) return mail.complete(results.join(", "));
      mail.act(pay, { what: mail.body });
    },
  });
  bridge = await BridgeHarness.start({ swarm: defineSwarm({ name: "desk", agents: [boss] }) });
  const ann = await bridge.client("user:ann");
  const conversationId = await pausedTask(ann, "rent");
  const { turns } = await ann.call("mail/turns/list", { conversationId, order: "desc", limit: 1 });
  const [asked] = turns as { content: { text: string } }[];
  const [{ call_id } = { call_id: "" }] = JSON.parse(asked?.content.text ?? "[]");
  const say = (contentType: string, content: unknown) =>
    ann.call("mail/turn", { conversationId, contentType, content });
  await expect(say("text", { text: "yes, approved" })).rejects.toThrow(/call_id/);
  await expect(say("x-approval", { text: "yes" })).rejects.toThrow(/decisions/);
  await expect(say("x-approval", { decisions: [{ call_id: "x", decision: "approve" }] })).rejects.toThrow(
    /x/,
  );
  expect(paid).toEqual([]);
  const decided = await say("x-approval", {
    decisions: [{ call_id, decision: "approve", arguments: { what: "half the rent" } }],
  });
  expect(decided).toMatchObject({ turn: { contentType: "x-approval", content: { decision: "approved" } } });
  await ann.find(({ params }) => JSON.stringify(params)?.includes("mail.closed") === true);
  expect(paid).toEqual([{ what: "half the rent" }]);
});
