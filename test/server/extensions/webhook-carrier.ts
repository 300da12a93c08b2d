/** A carrier: posts mail for `anything@webhook` to a URL. */
import { defineExtension, defineSettings, httpUrl } from "agent-mailroom/server";

export const webhookCarrier = defineExtension({
  name: "webhook",
  settings: defineSettings({
    target: httpUrl("webhook.target", {
      doc: "Receives mail to `name@webhook`. Without it the extension is off.",
    }),
  }),
  create({ settings: { target }, names }) {
    if (target === undefined) return undefined;
    names.claim("webhook");
    return {
      carrier: {
        owns: (swarm) => swarm === "webhook",
        async deliver({ message }, { signal }) {
          const headers = { "content-type": "application/json", "idempotency-key": message.id };
          const body = JSON.stringify(message);
          const { status } = await fetch(target, { method: "POST", headers, body, signal });
          if (status >= 500) throw new Error(`the webhook answered ${status}`);
          return status < 300 ? { ok: true } : { ok: false, reason: `the webhook answered ${status}` };
        },
      },
    };
  },
});
