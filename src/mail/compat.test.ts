import { describe, expect, it } from "vitest";
import { createAgentAddress, createSystemAddress } from "./address.js";
import { buildBroadcast, buildComplete, buildResponse, buildSystemComplete } from "./build.js";
import {
  acceptInterswarmMessage,
  acceptMailMessage,
  isTaskComplete,
  parseAcceptedInterswarmMessage,
  parseAcceptedMailMessage,
} from "./compat.js";
import { checkInterswarmMessage, checkMailMessage } from "./validate.js";

/** As sent by a Python 1.3.5 server to /interswarm/forward. */
const fromPython = () => ({
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
    body: "[remote] What is the weather in Tokyo?",
    sender_swarm: null,
    recipient_swarm: null,
    routing_info: { remote_swarm: "beta" },
  },
  msg_type: "request",
  auth_token: "not-a-real-token",
  task_owner: "user:alice@alpha",
  task_contributors: ["user:alice@alpha"],
  metadata: {},
});

/** As in a Python event: an agent's broadcast with nulls. */
const pythonBroadcast = () => ({
  id: "e3401ade-9d4e-410a-b24a-cd53fdbeb986",
  timestamp: "2026-11-16T01:35:38+00:00",
  message: {
    task_id: "d48aa18b-e6cc-466b-a1ae-bf1fe36c000f",
    broadcast_id: "739d7384-9a9f-42e9-8440-6c2e7c7c9fc8",
    sender: { address_type: "agent", address: "supervisor" },
    recipients: [{ address_type: "agent", address: "all" }],
    subject: "s",
    body: "b",
    sender_swarm: null,
    recipient_swarms: null,
    routing_info: null,
  },
  msg_type: "broadcast",
});

describe("accepting wrappers", () => {
  it("normalizes Python's form, under `message` or bare", () => {
    const wrapped = parseAcceptedInterswarmMessage({ message: fromPython() });
    expect(wrapped.payload).not.toHaveProperty("sender_swarm");
    expect(wrapped.payload).not.toHaveProperty("recipient_swarm");
    expect(wrapped.payload.routing_info).toEqual({ remote_swarm: "beta" });
    expect(checkInterswarmMessage(wrapped).ok).toBe(true);
    expect(parseAcceptedInterswarmMessage(fromPython())).toEqual(wrapped);
  });

  it("does not change the input", () => {
    const input = { message: fromPython() };
    acceptInterswarmMessage(input);
    expect(input).toEqual({ message: fromPython() });
  });

  it("accepts a missing or null token and metadata", () => {
    const { auth_token, metadata, ...bare } = fromPython();
    expect(acceptInterswarmMessage(bare).ok).toBe(true);
    const accepted = parseAcceptedInterswarmMessage({ ...bare, auth_token: null, metadata: null });
    expect(accepted).not.toHaveProperty("auth_token");
    expect(accepted).not.toHaveProperty("metadata");
  });

  it("derives an owner for the oldest form only on request", () => {
    const { task_owner, task_contributors, ...old } = fromPython();
    expect(acceptInterswarmMessage(old)).toMatchObject({ ok: false });
    expect(parseAcceptedInterswarmMessage(old, { deriveOwner: true })).toMatchObject({
      task_owner: "swarm:alpha@alpha",
      task_contributors: ["swarm:alpha@alpha"],
    });
    expect(parseAcceptedInterswarmMessage(fromPython(), { deriveOwner: true }).task_owner).toBe(
      "user:alice@alpha",
    );
  });

  it("reports problems with paths of the original", () => {
    const broken = { ...fromPython(), payload: { ...fromPython().payload, subject: null } };
    expect(acceptInterswarmMessage({ message: broken })).toEqual({
      ok: false,
      errors: [{ path: "/message/payload/subject", message: "must be a string" }],
    });
    expect(acceptInterswarmMessage(broken)).toMatchObject({ errors: [{ path: "/payload/subject" }] });
  });

  it.each([undefined, null, 1, [], {}, { message: null }, { payload: 1 }])(
    "rejects %j without throwing",
    (value) => {
      expect(acceptInterswarmMessage(value).ok).toBe(false);
      expect(() => parseAcceptedInterswarmMessage(value)).toThrow("not a valid");
    },
  );
});

describe("accepting messages", () => {
  it("treats null in optional fields as absent", () => {
    const accepted = parseAcceptedMailMessage(pythonBroadcast());
    expect(Object.keys(accepted.message)).toEqual([
      "task_id",
      "broadcast_id",
      "sender",
      "recipients",
      "subject",
      "body",
    ]);
    expect(checkMailMessage(accepted).ok).toBe(true);
    expect(checkMailMessage(pythonBroadcast()).ok).toBe(false);
  });

  it("gives a system with the address `system` the name of its swarm", () => {
    const sample = pythonBroadcast();
    const message = { ...sample.message, sender: { address_type: "system", address: "system" } };
    expect(parseAcceptedMailMessage({ ...sample, message }).message.sender.address).toBe("system");
    expect(parseAcceptedMailMessage({ ...sample, message }, { localSwarm: "books" }).message.sender).toEqual(
      createSystemAddress("books"),
    );
    const named = { ...message, sender_swarm: "alpha" };
    expect(parseAcceptedMailMessage({ ...sample, message: named }).message.sender.address).toBe("alpha");
  });

  it("does not rename an agent called system", () => {
    const sample = pythonBroadcast();
    const message = { ...sample.message, sender: { address_type: "agent", address: "system" } };
    const accepted = parseAcceptedMailMessage({ ...sample, message }, { localSwarm: "books" });
    expect(accepted.message.sender.address).toBe("system");
  });

  it("requires UUIDs as task ids on request", () => {
    const sample = pythonBroadcast();
    const own = { ...sample, message: { ...sample.message, task_id: "not-a-uuid" } };
    expect(acceptMailMessage(own).ok).toBe(true);
    expect(acceptMailMessage(own, { strictIds: true }).ok).toBe(false);
  });
});

describe("recognizing a completion", () => {
  const common = {
    id: "b0a2d6cf-6f39-4d76-8a30-7d9c0e0ffb44",
    timestamp: "2026-03-02T08:15:30.120Z",
    taskId: "5b0b2c0e-6a53-4c4b-9d2a-0f6f7e8a1b11",
    sender: createAgentAddress("supervisor"),
    recipient: createAgentAddress("librarian"),
    requestId: "r",
    body: "",
  };
  const complete = buildComplete({ ...common, swarm: "books", finishMessage: "done" });

  it("accepts both spellings of the subject", () => {
    expect(isTaskComplete(complete)).toBe(true);
    expect(isTaskComplete({ ...complete, message: { ...complete.message, subject: "Task complete" } })).toBe(
      true,
    );
  });

  it("accepts the response that represents it between swarms", () => {
    const finish = fromPython();
    const wrapper = {
      ...finish,
      msg_type: "response",
      payload: { ...finish.payload, subject: "::task_complete::" },
    };
    expect(isTaskComplete(parseAcceptedInterswarmMessage(wrapper))).toBe(true);
    expect(isTaskComplete(buildResponse({ ...common, subject: "::task_complete::" }))).toBe(true);
  });

  it("rejects ordinary mail and other ends of a task", () => {
    expect(isTaskComplete(buildResponse({ ...common, subject: "Task complete" }))).toBe(false);
    expect(isTaskComplete(buildBroadcast({ ...common, subject: "::task_complete::" }))).toBe(false);
    const failed = buildSystemComplete({ ...common, swarm: "books", subject: "::runtime_error::" });
    expect(isTaskComplete(failed)).toBe(false);
    expect(isTaskComplete(parseAcceptedInterswarmMessage(fromPython()))).toBe(false);
  });
});
