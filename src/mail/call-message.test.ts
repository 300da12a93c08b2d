import { describe, expect, it } from "vitest";
import { type CallContext, convertCallToMailMessage } from "./call-message.js";
import { checkMailMessage } from "./validate.js";

const context: CallContext = {
  id: "b0a2d6cf-6f39-4d76-8a30-7d9c0e0ffb44",
  timestamp: "2026-03-02T08:15:30.120Z",
  taskId: "5b0b2c0e-6a53-4c4b-9d2a-0f6f7e8a1b11",
  agent: "supervisor",
  swarm: "books",
};
const content = { subject: "s", body: "b" };
const agent = (address: string) => ({ address_type: "agent", address });

function convert(name: string, args: Record<string, unknown>, more: Partial<CallContext> = {}) {
  const converted = convertCallToMailMessage({ id: "c", name, args }, { ...context, ...more });
  if (!converted.ok) throw new Error(converted.message);
  expect(checkMailMessage(converted.value, { strictIds: true })).toMatchObject({ ok: true });
  return converted.value;
}

describe("from a call to a message", () => {
  it("sends a request to a local agent in any spelling", () => {
    for (const target of ["librarian", "librarian@books"]) {
      const message = convert("send_request", { target, ...content });
      expect(message).toMatchObject({
        id: context.id,
        msg_type: "request",
        message: {
          task_id: context.taskId,
          sender: agent("supervisor"),
          recipient: agent("librarian"),
          ...content,
        },
      });
      expect(message.message).not.toHaveProperty("routing_info");
    }
  });

  it("adds the route of a message to another swarm", () => {
    expect(convert("send_request", { target: "forecaster@weather", ...content }).message).toMatchObject({
      recipient: agent("forecaster@weather"),
      sender_swarm: "books",
      recipient_swarm: "weather",
      routing_info: { remote_swarm: "weather" },
    });
    expect(convert("send_interrupt", { target: "forecaster@weather", ...content }).message).toMatchObject({
      recipients: [agent("forecaster@weather")],
      recipient_swarms: ["weather"],
    });
  });

  it("a response refers to its request", () => {
    expect(convert("send_response", { target: "librarian", ...content }, { requestId: "r-1" })).toMatchObject(
      {
        msg_type: "response",
        message: { request_id: "r-1" },
      },
    );
  });

  it("broadcasts to all, or once to each named agent", () => {
    expect(convert("send_broadcast", content).message).toMatchObject({ recipients: [agent("all")] });
    const targets = ["librarian", "librarian@books", "forecaster@weather"];
    expect(convert("send_broadcast", { ...content, targets }).message).toMatchObject({
      recipients: [agent("librarian"), agent("forecaster@weather")],
      recipient_swarms: ["weather"],
    });
  });

  it("broadcasts to the named or all known swarms, never to the local one", () => {
    const named = { ...content, target_swarms: ["weather", "books"] };
    expect(convert("send_interswarm_broadcast", named).message).toMatchObject({
      recipients: [agent("all@weather")],
    });
    const knownSwarms = ["books", "weather", "maps"];
    expect(convert("send_interswarm_broadcast", content, { knownSwarms }).message).toMatchObject({
      recipients: [agent("all@weather"), agent("all@maps")],
    });
    expect(
      convertCallToMailMessage({ id: "c", name: "send_interswarm_broadcast", args: content }, context),
    ).toMatchObject({ ok: false, message: expect.stringContaining("target_swarms") });
  });

  it("ends the task", () => {
    expect(convert("task_complete", { finish_message: "1851" })).toMatchObject({
      msg_type: "broadcast_complete",
      message: { subject: "::task_complete::", body: "1851", recipients: [agent("all")] },
    });
  });

  it.each([
    ["await_message", {}, /sends no message/],
    ["help", {}, /sends no message/],
    ["ask_owner", {}, /not a MAIL tool/],
    ["send_request", { target: "librarian" }, /subject is missing/],
  ])("rejects %s %j", (name, args, reason) => {
    const converted = convertCallToMailMessage({ id: "c", name, args }, context);
    if (converted.ok) throw new Error("converted");
    expect(converted.message).toMatch(reason);
  });
});
