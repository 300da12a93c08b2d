/**
 * The minimum cost of a durable three-hop task over HTTP: a request, four sequential commits (opened, and the three
 * turns) with Mailroom's rows and sizes, and an answer. No engine, agents, routes or checks except the token's.
 * Prints its URL like Mailroom.
 */
import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { parseArgs } from "node:util";
import { systemIds } from "../src/base/node.js";
import type { TaskPut } from "../src/engine/ports.js";
import { openStore } from "../src/store/index.js";

/** Approximate characters of each of the four appends of the three-hop task. */
const SIZE = 800;
const DATA = JSON.stringify(["x".repeat(SIZE)]);

const { values } = parseArgs({
  allowPositionals: true,
  strict: false,
  options: { data: { type: "string" }, token: { type: "string" } },
});
const store = await openStore({ directory: String(values.data) });
const expected = hashOf(`Bearer ${String(values.token)}`);

function hashOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function taskRow(key: string, status: "running" | "completed", title?: string): TaskPut {
  const at = Date.now();
  const row = {
    key,
    instance: { role: "user", id: "ann" },
    taskId: key,
    owner: "user:ann@bare",
    status,
    createdAt: at,
    updatedAt: at,
  } as const;
  return { kind: "task.put", row: title === undefined ? row : { ...row, title } };
}

async function runTask(question: string): Promise<unknown> {
  const key = systemIds.ordered();
  const append = (number: number) => ({ journal: key, expected: number, count: 1, data: DATA });
  await store.commit({ appends: [append(0)], rows: [taskRow(key, "running", question)] });
  await store.commit({ appends: [append(1)] });
  await store.commit({ appends: [append(2)] });
  await store.commit({ appends: [append(3)], rows: [taskRow(key, "completed")] });
  return { response: "sunny, 21 °C", events: null, task_id: key, status: "completed", id: randomUUID() };
}

function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    request.on("data", (chunk) => {
      text += String(chunk);
    });
    request.on("end", () => resolve(text));
    request.on("error", reject);
  });
}

const server = createServer((request, response) => {
  void (async () => {
    const known = timingSafeEqual(hashOf(request.headers.authorization ?? ""), expected);
    const answer = known ? await runTask(JSON.parse(await bodyOf(request)).body) : { detail: "who?" };
    const text = JSON.stringify(answer);
    response.writeHead(known ? 200 : 401, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    });
    response.end(text);
  })();
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }));
});
process.once("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
  void store.close();
});
