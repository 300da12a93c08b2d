/** A task streamed over broken connections and killed servers: the received events are exactly the journal. */
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CompiledChild, compileChild } from "../crash/compile.js";
import { call, fieldOf, parseStream, type StreamedEvent } from "./harness.js";
import { chance, Life } from "./killed-server.js";

let child: CompiledChild;
beforeAll(() => {
  child = compileChild("http");
}, 120_000);
afterAll(() => child.remove());

const CUTS = 10;

/** Reads events after the last one seen until there are `most` of them, the stream ends, or the server is gone. */
function listen(url: string, lastSeen: string | undefined, most: number): Promise<StreamedEvent[]> {
  return new Promise((resolve) => {
    let text = "";
    const seen = () =>
      parseStream(text.slice(0, text.lastIndexOf("\r\n\r\n") + 4)).filter(({ id }) => id !== undefined);
    const request = httpRequest(
      `${url}/tasks/t/events?until=round`,
      {
        agent: false,
        headers: {
          accept: "text/event-stream",
          ...(lastSeen !== undefined && { "last-event-id": lastSeen }),
        },
      },
      (response) => {
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
          // Events received together with the last one also count as seen.
          if (seen().length >= most) request.destroy();
        });
        response.on("close", () => resolve(seen()));
      },
    );
    request.on("error", () => resolve(seen()));
    request.end();
  });
}

describe("a stream that is cut and whose server is killed", () => {
  for (const seed of [1, Math.floor(Math.random() * 2 ** 31)]) {
    it(`yields exactly the journal (seed ${seed})`, async () => {
      const random = chance(seed);
      const data = mkdtempSync(join(tmpdir(), "mailroom-resume-"));
      let life = new Life(child, data);
      try {
        const first = await call(await life.url, "/message", {
          json: { body: "go", task_id: "t", wait: false },
        });
        expect(first.status).toBe(202);
        const seen: StreamedEvent[] = [];
        let kills = 0;
        for (let cut = 0; cut < CUTS; cut++) {
          seen.push(...(await listen(await life.url, seen.at(-1)?.id, 1 + Math.floor(random() * 12))));
          if (random() < 0.5 || (cut === CUTS - 1 && kills === 0)) {
            await life.kill();
            kills++;
            life = new Life(child, data);
          }
        }
        seen.push(...(await listen(await life.url, seen.at(-1)?.id, Number.POSITIVE_INFINITY)));
        expect(seen.at(-1)).toMatchObject({
          event: "task_complete",
          data: { response: "done after 60 hops" },
        });
        expect(kills).toBeGreaterThan(0);

        const { body } = await call(await life.url, "/tasks/t");
        expect(seen.map(({ id }) => id)).toEqual(idsOf(body));
        expect(seen).toEqual(fieldOf(body, "events"));
      } finally {
        await life.kill();
        rmSync(data, { recursive: true, force: true });
      }
    }, 120_000);
  }
});

function idsOf(body: unknown): unknown[] {
  const events = fieldOf(body, "events");
  return Array.isArray(events) ? events.map((event) => fieldOf(event, "id")) : [];
}
