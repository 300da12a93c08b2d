/** A door: opens a task for every signed webhook, and lists how many it has opened. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { type Mailroom, MailroomError } from "agent-mailroom";
import {
  defineExtension,
  definePublicRoute,
  defineSettings,
  NO_INPUT,
  PUBLIC,
  type RawRoute,
  text,
} from "agent-mailroom/server";

export const webhookDoor = defineExtension({
  name: "hooks",
  settings: defineSettings({
    secret: text("hooks.secret", {
      secret: true,
      doc: "Signs incoming hooks. Without it the extension is off.",
    }),
  }),
  create({ settings: { secret } }) {
    if (secret === undefined) return undefined;
    let mailroom: Mailroom | undefined;
    let received = 0;
    const receive: RawRoute = {
      ...NO_INPUT,
      id: "receiveHook",
      method: "POST",
      path: "/hooks",
      tag: "messages",
      summary: "Open a task from a webhook",
      access: PUBLIC,
      answers: { 202: { description: "The task is open." } },
      async handle({ headers, body }) {
        const expected = createHmac("sha256", secret).update(body).digest();
        const given = Buffer.from(headers["x-signature"] ?? "", "hex");
        if (mailroom === undefined || given.length !== expected.length || !timingSafeEqual(given, expected)) {
          throw new MailroomError("unauthenticated", "the signature does not match");
        }
        const { taskId } = await mailroom.user("hooks").post(Buffer.from(body).toString("utf8"));
        received++;
        const response = JSON.stringify({ task_id: taskId });
        return { status: 202, headers: { "content-type": "application/json" }, body: response };
      },
    };
    const count = definePublicRoute({
      ...NO_INPUT,
      id: "countHooks",
      method: "GET",
      path: "/hooks",
      tag: "messages",
      summary: "The number of webhooks received",
      access: PUBLIC,
      answers: { 200: { description: "The number." } },
      handle: async () => ({ status: 200, body: { received } }),
    });
    return {
      routes: [receive, count],
      capabilities: ["hooks"],
      attach: (context) => {
        mailroom = context.mailroom;
      },
      health: () => ({ status: received > 1_000 ? "degraded" : "ok", detail: `${received} hooks` }),
    };
  },
});
