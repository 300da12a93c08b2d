import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../base/index.js";
import {
  buildBroadcast,
  buildComplete,
  buildInterrupt,
  buildRequest,
  buildResponse,
} from "../../mail/build.js";
import type { MAILMessage } from "../../mail/message.js";
import { parseInterswarmMessage } from "../../mail/validate.js";
import { validate } from "../inbound/validate.js";
import { buildWrapper, exportedName } from "./build.js";
import { checkSignature, generateSigningKey, readSigningKey } from "./signature.js";

const ID = "b0a2d6cf-6f39-4d76-8a30-7d9c0e0ffb44";
const COMMON = {
  id: ID,
  timestamp: "2026-03-02T08:15:30.120Z",
  taskId: "5b0b2c0e-6a53-4c4b-9d2a-0f6f7e8a1b11",
  subject: "Rain?",
  body: "Tomorrow.",
} as const;
const BOSS = { address_type: "agent", address: "boss" } as const;
const to = (address: string) => ({ address_type: "agent", address }) as const;

function wrap(message: MAILMessage, hops = 1) {
  return buildWrapper({
    message,
    hops,
    source: "alpha",
    target: "beta",
    owner: "user:ann@alpha",
    contributors: ["user:ann@alpha", "swarm:alpha@beta"],
  });
}

const MESSAGES: readonly [string, MAILMessage][] = [
  ["request", buildRequest({ ...COMMON, sender: BOSS, recipient: to("clerk@beta") })],
  ["response", buildResponse({ ...COMMON, sender: BOSS, recipient: to("clerk@beta"), requestId: "any" })],
  ["broadcast", buildBroadcast({ ...COMMON, sender: BOSS, recipients: [to("all@beta"), to("poet@gamma")] })],
  ["interrupt", buildInterrupt({ ...COMMON, sender: BOSS, recipients: [to("clerk@beta"), to("ann")] })],
];

describe("building a wrapper", () => {
  it.each(MESSAGES)(
    "[MAIL-INTER-02] wraps a %s validly, with the fields that the reference requires",
    (_, message) => {
      const wrapper = parseInterswarmMessage(JSON.parse(JSON.stringify(wrap(message))));
      expect(wrapper).toMatchObject({
        message_id: message.id,
        source_swarm: "alpha",
        target_swarm: "beta",
        task_owner: "user:ann@alpha",
        task_contributors: ["user:ann@alpha", "swarm:alpha@beta"],
        // The reference requires a string and an object; a real token is never sent (REF-11).
        auth_token: "",
        metadata: { hops: 1 },
      });
      expect(wrapper.payload.sender).toEqual({ address_type: "agent", address: "boss@alpha" });
      expect(JSON.stringify(wrapper)).not.toContain("null");
      const { payload } = wrapper;
      const recipients = "recipient" in payload ? [payload.recipient] : payload.recipients;
      for (const { address } of recipients) expect(address).toMatch(/@beta$/);
      expect(recipients).toHaveLength(1);
    },
  );

  it("turns users into agents with valid names", () => {
    const sender = { address_type: "user", address: "ann@example.com" } as const;
    const { payload } = wrap(buildRequest({ ...COMMON, sender, recipient: to("clerk@beta") }));
    expect(payload.sender).toEqual({ address_type: "agent", address: "ann_example.com@alpha" });
    expect(exportedName("a:b c@d")).toBe("a_b_c_d");
  });

  it("marks the end of a task in its metadata, and rejects a completion", () => {
    const parts = { ...COMMON, sender: BOSS, recipient: to("all@beta"), requestId: ID };
    const notice = buildResponse({ ...parts, subject: "::task_cancelled::" });
    expect(wrap(notice).metadata).toMatchObject({ mail_event: "task_cancelled" });
    const completion = buildComplete({ ...COMMON, sender: BOSS, swarm: "alpha", finishMessage: "done" });
    expect(() => wrap(completion)).toThrow("never as broadcast_complete");
  });

  it("produces what the receiving side validates", () => {
    for (const [, message] of MESSAGES) {
      const incoming = validate(wrap(message, 3), { peer: "alpha", local: "beta", maxHops: 8 });
      expect(incoming.message.message).toMatchObject({
        subject: "Rain?",
        body: "Tomorrow.",
        routing_info: { hops: 3 },
      });
      expect(incoming.message.message.sender.address).toBe("boss@alpha");
      expect(incoming.names).toEqual([message.msg_type === "broadcast" ? "all" : "clerk"]);
    }
  });
});

describe("a wrapper's signature", () => {
  const key = readSigningKey(generateSigningKey());
  const other = readSigningKey(generateSigningKey());
  const [, request] = MESSAGES[0] ?? [];
  if (request === undefined) throw new Error("there is a request");
  const signed = key.sign(wrap(request));

  it("is accepted from the pinned key, whatever the order of fields and the token in the body", () => {
    const { metadata, payload, ...rest } = signed;
    const shuffled = JSON.parse(JSON.stringify({ metadata, payload, ...rest, auth_token: "changed" }));
    expect(checkSignature(shuffled, key.publicKey, "required")).toEqual({ ok: true, signed: true });
    expect(parseInterswarmMessage(JSON.parse(JSON.stringify(signed)))).toEqual(signed);
  });

  it("is rejected after a change of a signed field, from another key, and in another form", () => {
    const forged = [
      { ...signed, task_owner: "user:eve@alpha" },
      { ...signed, target_swarm: "gamma" },
      { ...signed, payload: { ...signed.payload, body: "Today." } },
      { ...signed, metadata: { ...signed.metadata, hops: 0 } },
    ];
    for (const wrapper of forged) {
      expect(checkSignature(wrapper as typeof signed, key.publicKey, "optional")).toEqual({
        ok: false,
        reason: "invalid",
      });
    }
    expect(checkSignature(signed, other.publicKey, "optional")).toEqual({ ok: false, reason: "invalid" });
    const odd = { ...signed, metadata: { signature: 7 } };
    expect(checkSignature(odd, key.publicKey, "optional")).toEqual({ ok: false, reason: "malformed" });
  });

  it("is required by policy, and counts as absent without a pinned key", () => {
    const bare = wrap(request);
    expect(checkSignature(bare, key.publicKey, "optional")).toEqual({ ok: true, signed: false });
    expect(checkSignature(bare, key.publicKey, "required")).toEqual({ ok: false, reason: "missing" });
    expect(checkSignature(signed, null, "optional")).toEqual({ ok: true, signed: false });
    expect(checkSignature(signed, null, "required")).toEqual({ ok: false, reason: "no_key" });
  });

  it("is made over canonical JSON, which does not depend on the order of keys", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        const back: unknown = JSON.parse(text);
        expect(canonicalJson(back)).toBe(text);
        expect(back).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
    // RFC 8785, 3.2.3: keys are ordered by their UTF-16 units.
    const keys = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 };
    expect(canonicalJson(keys)).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
    );
    expect(canonicalJson([1e21, 0.000001, -0, 333333333.3333333])).toBe(
      "[1e+21,0.000001,0,333333333.3333333]",
    );
  });
});
