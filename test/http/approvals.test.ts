/** Approval by others: named users and roles, admins that act for owners, and the audit log. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { type Harness, startServer } from "./harness.js";

const ANN = "user-token-ann";
const BOB = "user-token-bob";
const EVE = "user-token-eve";
const ROOT = "admin-token-root";

let lax: Harness;
let strict: Harness;
beforeAll(async () => {
  lax = await startServer({ adminsActForOwners: true });
  strict = await startServer();
});
afterAll(async () => {
  await lax.close();
  await strict.close();
});

const as = (server: Harness, token: string) => new MailClient(server.url, { token });

/** Ann's task that waits for a person, and its key. */
async function paused(server: Harness, taskId: string): Promise<string> {
  await as(server, ANN).postMessage("[breakpoint] buy it", { taskId });
  return (await as(server, ANN).getTask(taskId)).key ?? "";
}

async function keysFor(server: Harness, token: string, scope: "mine" | "all" = "mine"): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of as(server, token).approvals({ scope, limit: 1 })) keys.push(key);
  return keys;
}

async function auditFor(server: Harness, token: string, key: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const { actor, action, right } of as(server, token).audit({ key })) {
    lines.push(`${actor} ${action} ${right}`);
  }
  return lines;
}

describe("a user who was named", () => {
  it("finds the task in their own list, sees only its open calls, and answers it with their own token", async () => {
    const key = await paused(strict, "named");
    expect(await keysFor(strict, BOB)).toEqual([]);
    await as(strict, ANN).nameApprovers("named", ["user:user-bob"]);
    expect(await keysFor(strict, BOB)).toEqual([key]);
    expect(await keysFor(strict, ANN)).toContain(key);
    const { body } = await strict.call(`/approvals/${key}`, { token: BOB });
    expect(body).toMatchObject({
      key,
      task_owner: "user:user-ann@alpha",
      right: "approver",
      approvers: ["user:user-bob"],
      calls: [{ agent: "weather" }],
    });
    // The task itself stays the owner's.
    expect((await strict.call("/tasks/named", { token: BOB })).status).toBe(404);
    await as(strict, BOB).answerApproval(key, "yes, buy it");
    expect(await keysFor(strict, BOB)).toEqual([]);
    const record = await as(strict, ANN).getTask("named");
    expect(JSON.stringify(record)).toContain("yes, buy it");
    const entries = [];
    const task = await strict.mailroom.user("user-ann").requireTask("named");
    for await (const { entry } of task.journal()) entries.push(entry);
    expect(entries).toContainEqual(
      expect.objectContaining({ t: "approvers", by: "user:user-ann", approvers: ["user:user-bob"] }),
    );
    expect(entries).toContainEqual(
      expect.objectContaining({ t: "result", breakpoint: true, by: "user:user-bob" }),
    );
    const said = ["user:user-bob answer approver", "user:user-ann approvers owner"];
    for (const token of [ROOT, ANN]) expect(await auditFor(strict, token, key)).toEqual(said);
    expect(await auditFor(strict, BOB, key)).toEqual(said.slice(0, 1));
    expect(await auditFor(strict, EVE, key)).toEqual([]);
  });

  it("may no longer answer after the owner took it back, and could never name others", async () => {
    const key = await paused(strict, "taken-back");
    await as(strict, ANN).nameApprovers("taken-back", ["user:user-bob", "user:user-eve"]);
    await as(strict, ANN).nameApprovers("taken-back", ["user:user-eve"]);
    expect(await keysFor(strict, BOB)).not.toContain(key);
    await expect(as(strict, BOB).answerApproval(key, "yes")).rejects.toMatchObject({ status: 404 });
    expect((await strict.call(`/approvals/${key}`, { token: BOB })).status).toBe(404);
    await expect(
      strict.mailroom.approvals.nameApprovers({ role: "user", id: "user-eve" }, key, ["user"]),
    ).rejects.toMatchObject({ code: "forbidden" });
    await as(strict, EVE).answerApproval(key, "yes");
    await expect(as(strict, EVE).answerApproval(key, "again")).rejects.toMatchObject({ status: 404 });
  });

  it("by their role is any principal of that role", async () => {
    const key = await paused(strict, "role");
    await as(strict, ANN).nameApprovers("role", ["admin"]);
    expect(await keysFor(strict, EVE)).not.toContain(key);
    expect(await keysFor(strict, ROOT)).toEqual([key]);
    await as(strict, ROOT).answerApproval(key, "approved");
    expect(await auditFor(strict, ROOT, key)).toContain("admin:root answer approver");
  });

  it("answers once per idempotency key", async () => {
    const key = await paused(strict, "once");
    await as(strict, ANN).nameApprovers("once", ["user:user-bob"]);
    const answer = () =>
      strict.call(`/approvals/${key}`, {
        token: BOB,
        json: { results: "yes" },
        headers: { "idempotency-key": "k1" },
      });
    const [one, two] = [await answer(), await answer()];
    expect([one.status, two.status]).toEqual([200, 200]);
    expect(two.body).toEqual(one.body);
    expect(await auditFor(strict, BOB, key)).toHaveLength(1);
  });

  it.each([
    [["nobody"], /names no approver/],
    [["agent:beta"], /names no approver/],
    [["user:"], /names no approver/],
    [Array.from({ length: 33 }, (_, index) => `user:${index}`), /32/],
  ])("%j is refused, and changes nothing", async (approvers, reason) => {
    await paused(strict, "bad-names");
    const reply = await strict.call("/tasks/bad-names/approvers", { token: ANN, json: { approvers } });
    expect(reply.status).toBe(400);
    expect(reply.text).toMatch(reason);
    expect((await as(strict, ANN).getTask("bad-names")).approvers).toBeUndefined();
  });
});

describe("an admin", () => {
  it("answers, posts and names approvers for an owner where the setting allows it", async () => {
    const key = await paused(lax, "acted");
    expect(await keysFor(lax, ROOT)).toEqual([]);
    expect(await keysFor(lax, ROOT, "all")).toEqual([key]);
    const root = as(lax, ROOT);
    await root.admin.nameApprovers(key, ["user:user-bob"]);
    expect(await keysFor(lax, BOB)).toEqual([key]);
    await root.answerApproval(key, "approved by root");
    await root.admin.postMessage(key, "and one more", { subject: "From the admin" });
    const record = await as(lax, ANN).getTask("acted");
    const sent = JSON.stringify(record.events);
    expect(sent).toContain("approved by root");
    expect(sent).toContain("From the admin");
    expect(sent).toContain('{"address_type":"admin","address":"root"}');
    expect(record.task_owner).toBe("user:user-ann@alpha");
    expect(await auditFor(lax, ANN, key)).toEqual([
      "admin:root message admin",
      "admin:root answer admin",
      "admin:root approvers admin",
    ]);
  });

  it("does none of this without the setting, and says which one", async () => {
    const key = await paused(strict, "not-acted");
    const root = as(strict, ROOT);
    await expect(root.admin.postMessage(key, "hello")).rejects.toMatchObject({ status: 403 });
    await expect(root.admin.nameApprovers(key, ["admin"])).rejects.toMatchObject({ status: 403 });
    await expect(root.answerApproval(key, "yes")).rejects.toMatchObject({ status: 404 });
    const reply = await strict.call("/approvals?scope=all", { token: ROOT });
    expect([reply.status, reply.text]).toEqual([403, expect.stringContaining("auth.admins_act_for_owners")]);
    expect((await strict.call("/approvals?scope=all", { token: EVE })).status).toBe(403);
    expect((await as(strict, ANN).getTask("not-acted")).status).toBe("paused");
  });

  it("that cancels another user's task is in the audit log", async () => {
    const key = await paused(strict, "cancelled");
    await as(strict, ROOT).admin.cancelTask(key);
    expect(await auditFor(strict, ANN, key)).toEqual(["admin:root cancel admin"]);
  });

  it("is found in the audit log by the task or the actor, however many newer records there are", async () => {
    const key = await paused(strict, "old");
    await as(strict, ROOT).admin.cancelTask(key);
    await paused(strict, "newer");
    for (const name of ["user:x", "user:y"]) await as(strict, ANN).nameApprovers("newer", [name]);
    for (const token of [ANN, ROOT]) {
      for (const query of [`key=${key}`, `key=${key}&actor=admin:root`]) {
        const { body } = await strict.call(`/audit?limit=1&${query}`, { token });
        expect(body).toMatchObject({ records: [{ actor: "admin:root", key }], next_before: null });
      }
    }
    await as(strict, ANN).nameApprovers("old", []);
    await as(strict, ANN).nameApprovers("old", ["user:x"]);
    for (const token of [ANN, ROOT]) {
      const { body } = await strict.call(`/audit?limit=1&key=${key}&actor=admin:root`, { token });
      expect(body).toMatchObject({ records: [{ actor: "admin:root", key }], next_before: null });
    }
  });
});
