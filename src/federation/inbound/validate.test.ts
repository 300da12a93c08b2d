import { describe, expect, it } from "vitest";
import { acceptInterswarmMessage } from "../../mail/compat.js";
import type { MAILInterswarmMessage } from "../../mail/message.js";
import { expandNames, hopsOf, validate } from "./validate.js";

/** The reference's form (REF-11, REF-14): nulls, a time offset, a token in the body. */
function wrapper(
  changes: Record<string, unknown> = {},
  payload: Record<string, unknown> = {},
): MAILInterswarmMessage {
  const checked = acceptInterswarmMessage({
    message: {
      message_id: "dd1af5c3-a1ea-4d44-91a4-04f8a9e0c687",
      source_swarm: "alpha",
      target_swarm: "beta",
      timestamp: "2026-11-16T01:35:41.449417+00:00",
      payload: {
        task_id: "1b35361f-67dc-4c6d-8ad0-39946c83d658",
        request_id: "21f5dfd5-6484-4a2b-b469-48deb58bc2aa",
        sender: { address_type: "agent", address: "supervisor@alpha" },
        recipient: { address_type: "agent", address: "weather@beta" },
        subject: "Forecast",
        body: "Tokyo?",
        sender_swarm: null,
        recipient_swarm: null,
        routing_info: { remote_swarm: "beta" },
        ...payload,
      },
      msg_type: "request",
      auth_token: "agent-token-alpha",
      task_owner: "user:alice@alpha",
      task_contributors: ["user:alice@alpha"],
      metadata: {},
      ...changes,
    },
  });
  if (!checked.ok) throw new Error(JSON.stringify(checked.errors));
  return checked.value;
}

const CONTEXT = { peer: "alpha", local: "beta", maxHops: 8 } as const;

describe("validating a message from another swarm", () => {
  it("[MAIL-CONF-04] accepts the reference's form and gives the recipients their local names", () => {
    const incoming = validate(wrapper(), CONTEXT);
    expect(incoming).toMatchObject({
      peer: "alpha",
      taskId: "1b35361f-67dc-4c6d-8ad0-39946c83d658",
      owner: { role: "user", id: "alice", swarm: "alpha" },
      contributors: ["user:alice@alpha"],
      names: ["weather"],
      ending: undefined,
    });
    expect(incoming.message.message).toMatchObject({
      sender: { address_type: "agent", address: "supervisor@alpha" },
      recipient: { address_type: "agent", address: "weather" },
      sender_swarm: "alpha",
      routing_info: { hops: 1 },
    });
  });

  it.each([
    ["a source_swarm that is not the token's", { source_swarm: "not-alpha" }, {}],
    ["a sender of another swarm", {}, { sender: { address_type: "agent", address: "supervisor@gamma" } }],
    ["a sender_swarm of another swarm", {}, { sender_swarm: "gamma" }],
  ])("[MAIL-SEC-02] rejects %s", (_, changes, payload) => {
    expect(() => validate(wrapper(changes, payload), CONTEXT)).toThrow(
      expect.objectContaining({ code: "peer_mismatch" }),
    );
  });

  it.each([
    ["for another swarm", { target_swarm: "gamma" }, {}, "wrong_swarm"],
    [
      "to an agent of another swarm",
      {},
      { recipient: { address_type: "agent", address: "x@gamma" } },
      "wrong_swarm",
    ],
    ["with an invalid owner", { task_owner: "alice" }, {}, "bad_wrapper"],
    ["with an invalid contributor", { task_contributors: ["alice"] }, {}, "bad_wrapper"],
    ["with too many hops", { metadata: { hops: 9 } }, {}, "too_many_hops"],
    ["with too many contributors", { task_contributors: Array(201).fill("user:a@b") }, {}, "bad_wrapper"],
    ["with an id that is too long", { message_id: "x".repeat(300) }, {}, "bad_wrapper"],
  ])("[MAIL-SEC-02] rejects a message %s", (_, changes, payload, code) => {
    expect(() => validate(wrapper(changes, payload), CONTEXT)).toThrow(expect.objectContaining({ code }));
  });

  it("turns a sender of type user, system or admin into an agent of the sending swarm", () => {
    for (const sender of [
      { address_type: "user", address: "alice" },
      { address_type: "system", address: "beta" },
      { address_type: "admin", address: "root" },
    ]) {
      const { message } = validate(wrapper({}, { sender }), CONTEXT);
      expect(message.message.sender).toEqual({ address_type: "agent", address: `${sender.address}@alpha` });
    }
  });

  it("drops local contributors that the peer claims, and unwraps reserved system subjects", () => {
    const claims = ["user:bob@beta", "swarm:x@gamma"];
    const incoming = validate(wrapper({ task_contributors: claims }, { subject: "::help::" }), CONTEXT);
    expect(incoming.contributors).toEqual(["user:alice@alpha", "swarm:x@gamma"]);
    expect(incoming.message.message.subject).toBe("help");
    const error = validate(wrapper({ msg_type: "response" }, { subject: "::agent_error::" }), CONTEXT);
    expect(error.message.message.subject).toBe("::agent_error::");
  });

  it.each([
    ["::task_complete::", "completed"],
    ["::task_cancelled::", "cancelled"],
    ["::task_error::", "failed"],
  ])("reads %s in a response as the end of the task, and ignores it in a request", (subject, ending) => {
    expect(validate(wrapper({ msg_type: "response" }, { subject }), CONTEXT).ending).toBe(ending);
    expect(validate(wrapper({}, { subject }), CONTEXT).ending).toBeUndefined();
  });

  it("counts hops by the higher of the two counters, and at least one", () => {
    expect(hopsOf(wrapper())).toBe(1);
    expect(hopsOf(wrapper({ metadata: { hops: 2 } }, { routing_info: { hops: 5 } }))).toBe(5);
    expect(hopsOf(wrapper({ metadata: { hops: -3 } }, { routing_info: { hops: "9" } }))).toBe(1);
  });

  it("uses the payload's id when message_id is not a UUID", () => {
    const { message } = validate(wrapper({ message_id: "msg-1" }), CONTEXT);
    expect(message.id).toBe("21f5dfd5-6484-4a2b-b469-48deb58bc2aa");
  });
});

it("`all` expands to every local agent, and an unknown name is rejected", () => {
  const agents = new Set(["a", "b"]);
  expect(expandNames(["all"], agents)).toEqual(["a", "b"]);
  expect(expandNames(["b", "all"], agents)).toEqual(["b", "a"]);
  expect(() => expandNames(["a", "c"], agents)).toThrow(
    expect.objectContaining({ code: "unknown_recipient" }),
  );
});
