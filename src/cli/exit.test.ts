import { describe, expect, it } from "vitest";
import { MailroomError } from "../base/index.js";
import { MailClientError, MailConnectionError, MailStreamError } from "../client/index.js";
import { badConfig } from "../settings/index.js";
import { EXIT, explain } from "./exit.js";

describe("explaining errors", () => {
  const refusal = (status: number) =>
    new MailClientError({ request: "GET /x", status, detail: "because", retryAfter: 7_000 });

  it.each([
    [refusal(401), EXIT.refused, /token/],
    [
      new MailClientError({ request: "GET /x", status: 401, detail: "invalid role" }),
      EXIT.refused,
      /another role \(admin\)/,
    ],
    [refusal(403), EXIT.refused, /role/],
    [refusal(503), EXIT.failure, /in 7 s/],
    [refusal(404), EXIT.failure, undefined],
    [new MailConnectionError("unreachable", "http://x", "no answer"), EXIT.unreachable, /mailroom server/],
    [new MailStreamError("stream_lost", "cut", { taskId: "t1" }), EXIT.unreachable, /tasks follow t1/],
    [
      new MailStreamError("stream_lost", "cut", {
        cause: new MailConnectionError("unreachable", "http://x", "no answer"),
      }),
      EXIT.unreachable,
      /mailroom server/,
    ],
    [new MailroomError("usage", "wrong", { details: { hint: "right" } }), EXIT.usage, /right/],
    [badConfig([{ place: "--port", message: "must be a number" }]), EXIT.usage, undefined],
    [
      badConfig([
        { place: "--port", message: "wrong" },
        { place: "mail.toml:2", message: "wrong too" },
      ]),
      EXIT.failure,
      undefined,
    ],
    [new Error("broken"), EXIT.failure, undefined],
    ["thrown text", EXIT.failure, undefined],
  ])("%s", (error, exit, hint) => {
    const said = explain(error);
    expect(said.exit).toBe(exit);
    expect(said.message).not.toBe("");
    if (hint === undefined) expect(said.hint).toBeUndefined();
    else expect(said.hint).toMatch(hint);
  });
});
