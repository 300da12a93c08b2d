/** Waking a program of the operator, and being woken. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  commandWaker,
  toWakeNotification,
  type WakeNotification,
  WakeTrigger,
  webhookWaker,
} from "../../src/doors/mesh/wake.js";
import { alice, bob, forEachTest, mesh, operatorOf } from "./harness.js";
import { serveTls } from "./kit.js";

forEachTest();

const secret = "a long random secret";

describe("wake", () => {
  it("[ASP-WAKE-01] a webhook receives the four fields with the secret; an unreachable URL does not affect the sender", async () => {
    const lab = await mesh.swarm(alice, bob);
    const notes: { note: WakeNotification; secret: string | undefined }[] = [];
    await using server = await serveTls(async ({ headers, body }) => {
      notes.push({ note: JSON.parse(Buffer.from(body).toString()), secret: headers["x-wake-secret"] });
      return { status: 202, headers: {}, body: "{}" };
    });
    const http = server.client();
    const problems: string[] = [];
    const trigger = new WakeTrigger(
      webhookWaker({ url: `${server.origin}/api/wake`, secret, http }),
      ({ code }) => problems.push(code),
    );
    bob.agent.onMessage((message) => trigger.wake(toWakeNotification(message, "bob")));
    const message = alice.message({ swarm_id: lab, recipient: "bob", extras: { priority: "high" } });
    await bob.answer(message);
    await bob.answer(message);
    await trigger.quiet();
    const note = {
      message_id: message.message_id,
      swarm_id: lab,
      sender_id: "alice",
      notification_level: "urgent",
    };
    expect(notes).toEqual([{ note, secret }]);
    await http.close();
    expect(await bob.answer(alice.message({ swarm_id: lab }))).toBe(200);
    await trigger.quiet();
    expect(problems).toEqual(["mesh_wake_failed"]);
  });

  it("a command receives the notification on standard input and nothing in its arguments", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mesh-wake-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const out = join(directory, "woken");
    const script =
      "const { argv } = process; const note = JSON.parse(fs.readFileSync(0));" +
      "fs.writeFileSync(argv[1], JSON.stringify({ note, rest: argv.slice(2) }));";
    const note: WakeNotification = {
      message_id: "$(touch pwned)",
      swarm_id: "; rm -rf /",
      sender_id: "a\n",
      notification_level: "normal",
    };
    await commandWaker([process.execPath, "-e", script, out])(note);
    expect(JSON.parse(readFileSync(out, "utf8"))).toEqual({ note, rest: [] });
    await expect(commandWaker([process.execPath, "-e", "process.exit(3)"])(note)).rejects.toThrow("3");
  });

  it("the wake route refuses a wrong secret", async () => {
    const woken: WakeNotification[] = [];
    const invoke = (note: WakeNotification) => {
      woken.push(note);
      return "invoked" as const;
    };
    const operator = operatorOf(bob, { wake: { secret, invoke } });
    const wake = async (headers: Record<string, string>, body: unknown) =>
      (await operator("POST", "/api/wake", body, headers)).status;
    const note = { message_id: "m", swarm_id: "s", sender_id: "a", notification_level: "normal" };
    expect(await wake({}, note)).toBe(403);
    expect(await wake({ "x-wake-secret": "guess" }, note)).toBe(403);
    expect(await wake({ "x-wake-secret": secret }, {})).toBe(400);
    expect(woken).toEqual([]);
    expect(await wake({ "x-wake-secret": secret }, note)).toBe(202);
    expect(woken).toEqual([note]);
  });
});
