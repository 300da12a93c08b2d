/** What an admin sees of mail to other servers, and can do about it. Tokens, too. */
import { afterEach, expect, it } from "vitest";
import { defineExtension } from "../../src/extension/index.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { createServer, type MailroomServer, standardExtensions } from "../../src/server/index.js";
import { call, fieldOf, type Reply } from "../http/harness.js";
import { until } from "../kit/waiting.js";

const ADMIN = "admin:root";

let server: MailroomServer;
let url: string;
afterEach(() => server.close(0));

const swarm = defineSwarm({
  name: "desk",
  enableInterswarm: true,
  agents: [
    defineAgent({
      name: "clerk",
      enableEntrypoint: true,
      canCompleteTasks: true,
      enableInterswarm: true,
      commTargets: ["ops@pager"],
      run: (mail) => {
        mail.request("ops@pager", "Call", mail.body);
        mail.complete("sent");
      },
    }),
  ],
});

/** Delivers nothing until it is allowed to. */
function pager() {
  let works = false;
  const delivered: string[] = [];
  const extension = defineExtension({
    name: "pager",
    create: ({ names }) => {
      names.claim("pager");
      return {
        carrier: {
          owns: (name) => name === "pager",
          async deliver({ message }) {
            if (!works) throw new Error("the line is busy");
            delivered.push(message.message.body);
            return { ok: true };
          },
        },
      };
    },
  });
  return {
    extension,
    delivered,
    repair: () => {
      works = true;
    },
  };
}

const outbox = async (query: string) =>
  (await call(url, `/admin/outbox?queue=extension:pager&${query}`, { token: ADMIN })).body;
const act = (id: unknown, what: string): Promise<Reply> =>
  call(url, `/admin/outbox/${String(id)}/${what}`, { token: ADMIN, method: "POST" });
const itemsIn = (body: unknown): unknown[] => [fieldOf(body, "items")].flat();

async function open(extension: ReturnType<typeof pager>["extension"]): Promise<void> {
  server = await createServer({
    swarm,
    data: false,
    dev: true,
    settings: { log: { level: "silent" } },
    extensions: [...standardExtensions, extension],
  });
  url = await server.listen({ port: 0 });
}

async function waiting(body: string): Promise<unknown> {
  await call(url, "/message", { token: "user:ann", json: { body, task_id: body } });
  const find = async () =>
    itemsIn(await outbox("status=waiting")).find((item) => Number(fieldOf(item, "attempts")) > 0);
  await until(async () => (await find()) !== undefined);
  return find();
}

it("shows waiting mail with its attempts and reasons, and delivers it on request", async () => {
  const { extension, delivered, repair } = pager();
  await open(extension);
  const item = await waiting("help");
  expect(item).toMatchObject({
    queue: "extension:pager",
    target: "pager",
    status: "waiting",
    reason: expect.stringContaining("the line is busy"),
    to: "ops@pager",
    subject: "Call",
    task_key: expect.stringMatching(/^[\da-f-]{36}$/),
    finished_at: null,
  });
  expect(JSON.stringify(item)).not.toContain("help");
  expect(await outbox("")).toMatchObject({
    queues: expect.arrayContaining(["federation", "extension:pager"]),
    // The other side is also notified that the task ended.
    counts: { waiting: 2, delivered: 0 },
    by_target: [{ target: "pager", waiting: 2 }],
    next_after: null,
  });
  repair();
  expect((await act(fieldOf(item, "id"), "retry")).status).toBe(200);
  await until(async () => fieldOf(await outbox(""), "counts", "delivered") === 2);
  expect(delivered[0]).toBe("help");
  expect((await act(fieldOf(item, "id"), "retry")).status).toBe(409);
  expect(itemsIn(await outbox("status=delivered"))[0]).toMatchObject({ task_key: fieldOf(item, "task_key") });
});

it("gives mail up on request, and its task learns why", async () => {
  const { extension } = pager();
  await open(extension);
  const item = await waiting("nobody answers");
  await until(async () => (await act(fieldOf(item, "id"), "abandon")).status === 200);
  expect(itemsIn(await outbox("status=expired"))).toMatchObject([
    { id: fieldOf(item, "id"), status: "expired", reason: "given up by admin 'root'" },
  ]);
  expect((await act(fieldOf(item, "id"), "abandon")).status).toBe(409);
  const journal = await call(url, `/admin/tasks/${String(fieldOf(item, "task_key"))}/journal`, {
    token: ADMIN,
  });
  expect([fieldOf(journal.body, "entries")].flat()).toContainEqual(
    expect.objectContaining({
      t: "carried",
      ok: false,
      reason: expect.stringContaining("given up by admin"),
    }),
  );
  for (const token of ["user:ann", "agent:x"])
    expect((await call(url, "/admin/outbox", { token })).status).toBe(403);
  expect((await act("none", "retry")).status).toBe(404);
});

it("lists tokens without their secrets, and revokes them", async () => {
  server = await createServer({ swarm, data: false, settings: { log: { level: "silent" } } });
  url = await server.listen({ port: 0 });
  const admin = await server.tokens.create({ role: "admin", id: "root" });
  const ann = await server.tokens.create({ role: "user", id: "ann", label: "laptop" });
  const list = await call(url, "/admin/tokens", { token: admin.token });
  expect(list.body).toMatchObject({
    tokens: [
      { token_id: admin.info.tokenId, role: "admin", id: "root", current: true, revoked_at: null },
      { token_id: ann.info.tokenId, role: "user", id: "ann", label: "laptop", current: false },
    ],
    next_cursor: null,
  });
  expect(list.text).not.toContain(ann.token);
  expect((await call(url, "/admin/tokens", { token: ann.token })).status).toBe(403);
  const path = `/admin/tokens/${ann.info.tokenId}/revoke`;
  expect((await call(url, path, { token: admin.token, method: "POST" })).status).toBe(200);
  expect((await call(url, "/whoami", { token: ann.token })).status).toBe(401);
  const unknown = await call(url, "/admin/tokens/none/revoke", { token: admin.token, method: "POST" });
  expect(unknown.status).toBe(404);
});
