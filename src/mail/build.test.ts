import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createAgentAddress, createUserAddress } from "./address.js";
import {
  buildBroadcast,
  buildComplete,
  buildInterrupt,
  buildRequest,
  buildResponse,
  buildSystemBroadcast,
  buildSystemComplete,
  buildSystemResponse,
} from "./build.js";
import type { MAILMessage } from "./message.js";
import { SYSTEM_SUBJECTS } from "./subjects.js";
import { checkMailMessage } from "./validate.js";

const ID = "b0a2d6cf-6f39-4d76-8a30-7d9c0e0ffb44";
const common = {
  id: ID,
  timestamp: "2026-03-02T08:15:30.120Z",
  taskId: "5b0b2c0e-6a53-4c4b-9d2a-0f6f7e8a1b11",
  subject: "Older book",
  body: "Which one?",
};
const sender = createAgentAddress("supervisor");
const recipient = createAgentAddress("librarian");

describe("a built message", () => {
  it("[MAIL-CONF-01] is valid and has no empty keys, with any optional parts", () => {
    fc.assert(
      fc.property(anyMessage(), (message) => {
        expect(checkMailMessage(message)).toEqual({ ok: true, value: message });
        // JSON preserves the message: no key is lost or becomes null.
        expect(JSON.parse(JSON.stringify(message))).toStrictEqual(message);
      }),
    );
  });

  it("uses the envelope's id as request id by default", () => {
    expect(buildRequest({ ...common, sender, recipient }).message.request_id).toBe(ID);
    const requestId = "c9d5f1de-7b0c-4d56-8c77-1f1e2f8f0a22";
    expect(buildRequest({ ...common, sender, recipient, requestId }).message.request_id).toBe(requestId);
  });

  it("[MAIL-RCPT-01] a broadcast goes to all by default", () => {
    expect(buildBroadcast({ ...common, sender }).message.recipients).toEqual([
      { address_type: "agent", address: "all" },
    ]);
    expect(buildBroadcast({ ...common, sender, recipients: [recipient] }).message.recipients).toEqual([
      recipient,
    ]);
  });

  it("[MAIL-ADDR-03] a completion goes to all, with the subject of completions", () => {
    const { message, msg_type } = buildComplete({ ...common, sender, swarm: "books", finishMessage: "1851" });
    expect(msg_type).toBe("broadcast_complete");
    expect(message.subject).toBe("::task_complete::");
    expect(message.body).toBe("1851");
    expect(message.recipients).toEqual([{ address_type: "agent", address: "all" }]);
    expect(message.sender_swarm).toBe("books");
  });

  it("[MAIL-ADDR-05] the system's address is the name of the swarm", () => {
    const system = { address_type: "system", address: "books" };
    const parts = { ...common, subject: SYSTEM_SUBJECTS.taskError, swarm: "books" };
    expect(buildSystemResponse({ ...parts, recipient }).message.sender).toEqual(system);
    expect(buildSystemBroadcast(parts).message.sender).toEqual(system);
    expect(buildSystemComplete(parts).message.sender).toEqual(system);
    expect(buildSystemComplete(parts).msg_type).toBe("broadcast_complete");
  });
});

function anyMessage(): fc.Arbitrary<MAILMessage> {
  const text = fc.string({ unit: "grapheme" });
  const base = fc.record({
    id: fc.uuid(),
    timestamp: fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date("9999-01-01") })
      .map((d) => d.toISOString()),
    taskId: fc.uuid(),
    sender: fc.constantFrom(sender, createUserAddress("u-17")),
    subject: text,
    body: text,
  });
  const routing = {
    senderSwarm: text,
    routingInfo: fc.dictionary(text, fc.boolean(), { noNullPrototype: true }),
  };
  const one = fc.record({ ...routing, recipientSwarm: text, requestId: fc.uuid() }, { requiredKeys: [] });
  const many = fc.record({ ...routing, recipientSwarms: fc.array(text) }, { requiredKeys: [] });
  const swarm = "books";
  return fc.oneof(
    fc.tuple(base, one).map(([parts, rest]) => buildRequest({ ...parts, recipient, ...rest })),
    fc
      .tuple(base, one)
      .map(([parts, rest]) => buildResponse({ ...parts, recipient, requestId: "any", ...rest })),
    fc.tuple(base, many).map(([parts, rest]) => buildBroadcast({ ...parts, ...rest })),
    fc
      .tuple(base, many)
      .map(([parts, rest]) => buildInterrupt({ ...parts, recipients: [recipient], ...rest })),
    base.map((parts) => buildComplete({ ...parts, swarm, finishMessage: parts.body })),
    base.map((parts) => buildSystemResponse({ ...parts, swarm, recipient })),
    base.map((parts) => buildSystemBroadcast({ ...parts, swarm })),
    base.map((parts) => buildSystemComplete({ ...parts, swarm })),
  );
}
