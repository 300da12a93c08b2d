/** The real server on a disk that fails: the responses to callers, and how the server exits. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { folder, type Started, serve } from "../cli/cli.js";
import { until } from "../federation/until.js";
import { compileShim, FailingDisk, whatIsMissing } from "./disk.js";

const missing = whatIsMissing();

const SWARM = JSON.stringify([
  {
    name: "till",
    version: "1.0.0",
    entrypoint: "clerk",
    agents: [
      {
        name: "clerk",
        factory: "module:./till.mjs#clerk",
        comm_targets: [],
        enable_entrypoint: true,
        can_complete_tasks: true,
        actions: ["pay"],
      },
    ],
    actions: [
      {
        name: "pay",
        description: "Pays.",
        parameters: { type: "object", properties: { what: { type: "string" } } },
        function: "module:./till.mjs#pay",
      },
    ],
  },
]);

/** Every payment is a line in a file. One for `slow` waits until there is a file named `go`. */
const TILL = `import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
const here = (name) => new URL(name, import.meta.url);
export const clerk = {
  run(mail) {
    if (mail.result) mail.complete(mail.result.content);
    else mail.act("pay", { what: mail.body });
  },
};
export async function pay({ what }) {
  while (what.startsWith("slow") && !existsSync(here("go"))) await delay(10);
  appendFileSync(here("payments"), what + "\\n");
  return "paid " + what;
}
`;

interface Till {
  readonly cwd: string;
  readonly disk: FailingDisk;
  start(): Promise<Started>;
  /** Releases the slow payments. */
  go(): void;
  readonly payments: () => string[];
}

async function openTill(): Promise<Till> {
  const here = await folder();
  const cwd = here.path;
  const disk = new FailingDisk(compileShim(cwd), cwd);
  writeFileSync(join(cwd, "swarms.json"), SWARM);
  writeFileSync(join(cwd, "till.mjs"), TILL);
  writeFileSync(join(cwd, "payments"), "");
  const started: Started[] = [];
  onTestFinished(async () => {
    for (const server of started) await server[Symbol.asyncDispose]();
    disk.close();
    await here[Symbol.asyncDispose]();
  });
  return {
    cwd,
    disk,
    start: async () => {
      const server = await serve(["--dev"], { cwd, env: disk.env });
      started.push(server);
      return server;
    },
    go: () => writeFileSync(join(cwd, "go"), ""),
    payments: () => readFileSync(join(cwd, "payments"), "utf8").split("\n").filter(Boolean),
  };
}

/** The task ids of messages that the server has accepted. */
async function postSlowly(client: MailClient, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    const { task_id } = await client.postMessage(`slow ${index}`, { wait: false });
    if (task_id === undefined) throw new Error("the server gave no task id");
    ids.push(task_id);
  }
  return ids;
}

describe.skipIf(missing !== undefined && process.env.CI !== "true")(
  `a server on a disk that fails${missing === undefined ? "" : `: skipped, ${missing}`}`,
  { timeout: 120_000 },
  () => {
    it("[ENGINE-A-3] a server with a full disk rejects new messages with a reason, and answers all waiting callers afterwards", async () => {
      const till = await openTill();
      const server = await till.start();
      const client = new MailClient(server.url, { retries: 0 });
      const waiting = Array.from({ length: 8 }, (_, index) => client.postMessage(`slow ${index}`));
      await until(async () => (await client.getTaskPage({ status: "running" })).tasks.length === 8);
      till.disk.fail("full");
      till.go();
      const refusal = await until(async () => {
        const response = await fetch(`${server.url}/message`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ body: "one more", wait: false }),
          signal: AbortSignal.timeout(1_000),
        }).catch(() => undefined);
        return response?.status === 503 ? response : undefined;
      });
      expect(Number(refusal.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await client.getHealth()).toMatchObject({
        status: "degraded",
        store: { waiting: expect.any(Number), retries: expect.any(Number), since: expect.any(String) },
      });
      expect(await (await fetch(`${server.url}/metrics`)).text()).toContain("mailroom_store_degraded 1");
      till.disk.mend();
      const answers = await Promise.all(waiting);
      expect(answers.map(({ response }) => response)).toEqual(
        answers.map((_, index) => `paid slow ${index}`),
      );
      expect((await client.postMessage("quick")).response).toBe("paid quick");
      await until(async () => (await client.getHealth()).status !== "degraded");
      const payments = till.payments().filter((line) => line.startsWith("slow"));
      expect(new Set(payments).size).toBe(payments.length);
    });

    for (const fault of ["write error", "sync error"] as const) {
      it(`[ENGINE-C-4] a server on a disk with a ${fault} exits at once with code 74 and a reason, and loses no accepted message`, async () => {
        const till = await openTill();
        const first = await till.start();
        const client = new MailClient(first.url, { retries: 0 });
        const ids = await postSlowly(client, 8);
        const cut = client.postMessage("slow and waited for").then(
          () => "answered",
          () => "turned away",
        );
        await until(async () => (await client.getTaskPage({ status: "running" })).tasks.length === 9);
        till.disk.fail(fault);
        till.go();
        const { code, stderr, stdout } = await first.ended;
        expect(code, stderr).toBe(74);
        expect(`${stdout}${stderr}`).toMatch(/the store failed/);
        expect(await cut).toBe("turned away");

        till.disk.mend();
        const second = await till.start();
        const again = new MailClient(second.url);
        for (const id of ids) {
          const task = await until(async () => {
            const found = await again.getTask(id);
            return found.status === "running" ? undefined : found;
          });
          // Paid by the earlier process, or interrupted by its end: never paid again.
          expect(task.status).toBe("completed");
        }
        const payments = till.payments();
        expect(new Set(payments).size).toBe(payments.length);
      });
    }
  },
);
