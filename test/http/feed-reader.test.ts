/** A listener of the feed that has missed something reads it in one of its caller's places. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/base/index.js";
import { Cursors } from "../../src/doors/mail/cursors.js";
import { FeedHub } from "../../src/doors/mail/feed/hub.js";
import { FeedReader } from "../../src/doors/mail/feed/reader.js";
import { type Harness, startServer } from "./harness.js";

let harness: Harness;
beforeEach(async () => {
  harness = await startServer();
});
afterEach(() => harness.close());

it("reads and sends missed tasks in a place, piece by piece", async () => {
  for (const taskId of ["a", "b"])
    await harness.call("/message", {
      token: "user-token",
      json: { body: "[direct] hello", task_id: taskId },
    });
  const { mailroom } = harness;
  const cursors = new Cursors(() => new Uint8Array(32));
  const hub = new FeedHub({
    mailroom,
    cursors,
    clock: systemClock,
    report: () => {},
    stats: () => undefined,
  });
  const steps: string[] = [];
  const left = new AbortController();
  const reader = new FeedReader({
    hub,
    store: mailroom.store,
    cursors,
    form: "plain",
    instance: { role: "user", id: "alice" },
    watched: undefined,
    stats: false,
    stream: {
      signal: left.signal,
      write: async (text) => {
        const event = /^event: (\w+)/.exec(String(text))?.[1] ?? "";
        steps.push(event);
      },
      place: async () => {
        steps.push("place");
        return () => {
          steps.push("left");
          left.abort();
        };
      },
      turn: async () => {
        steps.push("turn");
      },
    },
  });
  await reader.run({ entries: 0, tasks: 0 }, () => "event: hello\r\n\r\n");
  hub.close();
  expect(steps.filter((step) => step !== "counts")).toEqual([
    "hello",
    "place",
    "turn",
    "task",
    "task",
    "left",
  ]);
});
