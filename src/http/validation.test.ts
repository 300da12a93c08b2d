import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isMailroomError, MailroomError } from "../base/index.js";
import { MessageRequest } from "../doors/mail/schemas/message.js";
import { PageQuery } from "../extension/schemas.js";
import { parseJsonBody } from "./json-body.js";
import { Checker } from "./validation.js";

const checker = new Checker();
const message = checker.for(MessageRequest, "body");
const page = checker.for(PageQuery, "query");

function refusal(check: () => unknown): Record<string, unknown> {
  try {
    check();
  } catch (error) {
    if (isMailroomError(error)) return { detail: error.message, ...error.details };
    throw error;
  }
  throw new Error("the input was accepted");
}

describe("bodies", () => {
  it("may have null for unset fields, as the reference's client sends them", () => {
    const sent = {
      body: "hi",
      subject: "New Message",
      msg_type: "request",
      entrypoint: null,
      show_events: false,
      task_id: null,
      resume_from: null,
      kwargs: {},
    };
    expect(message(sent)).toEqual({
      body: "hi",
      subject: "New Message",
      msg_type: "request",
      show_events: false,
      kwargs: {},
    });
    expect(message({ kwargs: { max_steps: null } })).toEqual({ kwargs: { max_steps: null } });
  });

  it.each([
    [{ body: 5 }, "body", "body must be a string"],
    [{ show_events: "yes" }, "show_events", "show_events must be a boolean"],
    [{ msg_type: "response" }, "msg_type", "msg_type must be one of: request, broadcast, interrupt"],
    [{ task_id: "" }, "task_id", "task_id must not be empty"],
    [{ task_id: "a\nb" }, "task_id", "task_id has characters that are not allowed there"],
    [{ task_id: "x".repeat(257) }, "task_id", "task_id must have at most 256 characters"],
    [
      { kwargs: { max_steps: "many" } },
      "kwargs.max_steps",
      "kwargs.max_steps must be a positive integer, the text of one, or null for no limit",
    ],
    [{ kwargs: [] }, "kwargs", "kwargs must be an object"],
  ])("%j is rejected with the field's name", (body, field, detail) => {
    expect(refusal(() => message(body))).toEqual({ detail, field });
  });

  it("must be objects", () => {
    for (const body of [undefined, null, 5, "x", []]) {
      expect(refusal(() => message(body))).toEqual({ detail: "the body must be an object" });
    }
  });
});

describe("queries", () => {
  it("accept numbers as text", () => {
    expect(page({ limit: "25", status: "running" })).toEqual({ limit: 25, status: "running" });
    expect(refusal(() => page({ limit: "many" }))).toMatchObject({ field: "limit" });
    expect(refusal(() => page({ limit: ["1", "2"] }))).toMatchObject({ field: "limit" });
  });
});

describe("JSON", () => {
  it("equals the result of JSON.parse", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        fc.pre(!text.includes("__proto__"));
        expect(parseJsonBody(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("that is malformed is rejected with the position", () => {
    expect(refusal(() => parseJsonBody('{\n  "a": 1,\n  b: 2\n}'))).toMatchObject({ line: 3, column: 3 });
    expect(refusal(() => parseJsonBody('{"a": '))).toMatchObject({ line: 1, column: 7 });
  });

  it("never throws anything but a rejection", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseJsonBody(text);
        } catch (error) {
          expect(error).toBeInstanceOf(MailroomError);
        }
      }),
    );
  });
});
