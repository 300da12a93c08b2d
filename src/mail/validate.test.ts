import { describe, expect, expectTypeOf, it } from "vitest";
import { isMailroomError } from "../base/index.js";
import { createAgentAddress } from "./address.js";
import { buildBroadcast, buildRequest } from "./build.js";
import type { MAILMessage, MAILRequest } from "./message.js";
import { checkMailMessage, parseInterswarmMessage, parseMailMessage } from "./validate.js";

const request = buildRequest({
  id: "b0a2d6cf-6f39-4d76-8a30-7d9c0e0ffb44",
  timestamp: "2026-03-02T08:15:30.120Z",
  taskId: "my own task",
  sender: createAgentAddress("supervisor"),
  recipient: createAgentAddress("librarian"),
  subject: "",
  body: "",
});

describe("validating", () => {
  it("returns the same object", () => {
    expect(parseMailMessage(request)).toBe(request);
  });

  it("accepts a caller-chosen task id, unless ids are strict", () => {
    expect(checkMailMessage(request).ok).toBe(true);
    expect(checkMailMessage(request, { strictIds: true })).toEqual({
      ok: false,
      errors: [{ path: "/message/task_id", message: "must be a UUID" }],
    });
    const withUuid = { ...request, message: { ...request.message, task_id: request.id } };
    expect(checkMailMessage(withUuid, { strictIds: true }).ok).toBe(true);
  });

  it("[MAIL-CONF-02] throws an error that lists all problems", () => {
    const { timestamp, ...rest } = request;
    const broken = { ...rest, message: { ...request.message, subject: 7, "a/b~c": 1 } };
    const error = thrownBy(() => parseMailMessage(broken));
    expect(isMailroomError(error)).toBe(true);
    expect(error).toMatchObject({
      code: "bad_message",
      details: {
        errors: expect.arrayContaining([
          { path: "/timestamp", message: "is missing" },
          { path: "/message/subject", message: "must be a string" },
          { path: "/message/a~1b~0c", message: "is not a known field" },
        ]),
      },
    });
    expect(error).toHaveProperty("message", expect.stringContaining("/timestamp is missing"));
  });

  it.each([undefined, null, "text", 1, [], [request]])("rejects %j as a whole", (value) => {
    expect(checkMailMessage(value)).toEqual({
      ok: false,
      errors: [{ path: "", message: "must be an object" }],
    });
    expect(() => parseInterswarmMessage(value)).toThrow("not a valid");
  });

  it("limits the list of errors", () => {
    const { message } = buildBroadcast({
      ...request,
      taskId: "t",
      sender: createAgentAddress("a"),
      subject: "",
      body: "",
    });
    const flooded = {
      ...request,
      msg_type: "broadcast",
      message: { ...message, recipients: Array(5000).fill(1) },
    };
    const checked = checkMailMessage(flooded);
    expect(checked.ok).toBe(false);
    if (!checked.ok) expect(checked.errors.length).toBeLessThanOrEqual(20);
  });
});

describe("the types", () => {
  it("narrow by message type", () => {
    const message: MAILMessage = request;
    if (message.msg_type === "request") expectTypeOf(message.message).toEqualTypeOf<MAILRequest>();
  });

  it("have optional fields that are absent, not undefined", () => {
    expectTypeOf<{ sender_swarm?: string }>().toExtend<Pick<MAILRequest, "sender_swarm">>();
    expectTypeOf<{ sender_swarm: undefined }>().not.toExtend<Pick<MAILRequest, "sender_swarm">>();
  });
});

function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
