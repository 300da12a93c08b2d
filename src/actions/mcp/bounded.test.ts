import { createServer, type RequestListener, type Server } from "node:http";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { actionContext } from "../../testing/action-context.js";
import { mcpActions } from "../index.js";
import { boundedFetch } from "./bounded.js";

let server: Server | undefined;
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
});

async function serving(handle: RequestListener): Promise<string> {
  server = createServer(handle);
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/mcp`;
}

/** Reads a response that arrives in these chunks. */
function read(contentType: string, pieces: readonly string[], maxBytes: number): Promise<string> {
  const send: typeof fetch = async () => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    return new Response(body, { headers: { "content-type": contentType } });
  };
  return boundedFetch(send, maxBytes)("http://x.example").then((response) => response.text());
}

describe("the response of an MCP server", () => {
  it("is limited in size", async () => {
    let sent = 0;
    const piece = Buffer.alloc(1 << 20, " ");
    const url = await serving((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const more = (): void => {
        while (sent < 400 && !response.destroyed) {
          sent++;
          if (!response.write(piece)) return void response.once("drain", more);
        }
        response.end("{}");
      };
      more();
    });
    const { mcp_ping } = mcpActions({ allow: ["loopback"], timeLimit: 10_000 });
    await expect(mcp_ping.run({ server_url: url }, actionContext())).rejects.toThrow("is not available");
    expect(sent).toBeLessThan(100);
  });

  it("may be an unlimited stream of small events", async () => {
    const end = fc.constantFrom("\n", "\r\n", "\r");
    const event = fc
      .tuple(fc.stringMatching(/^[a-z]{0,20}$/), end)
      .map(([text, eol]) => `data:${text}${eol}${eol}`);
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { maxLength: 20 }),
        fc.integer({ min: 1, max: 7 }),
        async (events, size) => {
          const text = events.join("");
          const pieces = text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
          expect(await read("text/event-stream", pieces, 25)).toBe(text);
          await expect(read("text/event-stream", [...pieces, `data:${"x".repeat(21)}`], 25)).rejects.toThrow(
            "more than 25 bytes",
          );
        },
      ),
    );
  });

  it("is limited as a whole when it is not a stream", async () => {
    expect(await read("application/json", ["12345", "\n\n", "123"], 10)).toBe("12345\n\n123");
    await expect(read("application/json", ["12345", "\n\n", "1234"], 10)).rejects.toThrow(
      "more than 10 bytes",
    );
  });
});
