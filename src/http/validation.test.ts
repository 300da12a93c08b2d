import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HttpError } from "./errors.js";
import { parseJsonBody } from "./json-body.js";
import { PageQuery } from "./schemas/common.js";
import { MessageRequest } from "./schemas/message.js";
import { Checker } from "./validation.js";

const checker = new Checker();
const message = checker.for(MessageRequest, "body");
const page = checker.for(PageQuery, "query");

function refusal(check: () => unknown): Record<string, unknown> {
  try {
    check();
  } catch (error) {
    if (error instanceof HttpError) return { detail: error.message, ...error.details };
    throw error;
  }
  throw new Error("it was accepted");
}

describe("bodies", () => {
  it("may have null for what is not set, as the reference's client sends it", () => {
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
  ])("%j is refused naming the field", (body, field, detail) => {
    expect(refusal(() => message(body))).toEqual({ detail, field });
  });

  it("must be objects", () => {
    for (const body of [undefined, null, 5, "x", []]) {
      expect(refusal(() => message(body))).toEqual({ detail: "the body must be an object" });
    }
  });
});

describe("queries", () => {
  it("have numbers as text", () => {
    expect(page({ limit: "25", status: "running" })).toEqual({ limit: 25, status: "running" });
    expect(refusal(() => page({ limit: "many" }))).toMatchObject({ field: "limit" });
    expect(refusal(() => page({ limit: ["1", "2"] }))).toMatchObject({ field: "limit" });
  });
});

describe("JSON", () => {
  it("is what JSON.parse makes of it", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        fc.pre(!text.includes("__proto__"));
        expect(parseJsonBody(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("that is malformed is refused with the place", () => {
    expect(refusal(() => parseJsonBody('{\n  "a": 1,\n  b: 2\n}'))).toMatchObject({ line: 3, column: 3 });
    expect(refusal(() => parseJsonBody('{"a": '))).toMatchObject({ line: 1, column: 7 });
  });

  it("never throws anything but a refusal", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseJsonBody(text);
        } catch (error) {
          expect(error).toBeInstanceOf(HttpError);
        }
      }),
    );
  });
});
