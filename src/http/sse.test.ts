import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatEvent } from "../extension/index.js";

describe("a server-sent event", () => {
  it("is parsed back unchanged by a standard parser", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.option(fc.integer({ min: 1, max: 1e9 }), { nil: undefined }),
        (data, number) => {
          const read: unknown[] = [];
          const parser = createParser({ onEvent: (event) => read.push(event) });
          const id = number === undefined ? {} : { id: `${number}.2` };
          parser.feed(formatEvent({ event: "new_message", data, ...id }));
          expect(read).toEqual([{ event: "new_message", data: JSON.stringify(data), id: id.id }]);
        },
      ),
    );
  });

  it("has CRLF line endings, whatever the data", () => {
    const text = formatEvent({ event: "token", data: { delta: "a\nb\r\nc\u2028" } });
    expect(text.replaceAll("\r\n", "")).not.toMatch(/[\r\n]/);
    expect(text.endsWith("\r\n\r\n")).toBe(true);
  });
});
