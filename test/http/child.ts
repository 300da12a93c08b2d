/** A server in its own process, to be killed. Arguments: data directory. Prints its URL. */

import { Mailroom } from "../../src/library/mailroom.js";
import { defineAgent } from "../../src/swarm/agent.js";
import { defineSwarm } from "../../src/swarm/define.js";
import { createListener } from "../kit/listener.js";

/** Long enough to be interrupted often, short enough to finish. */
const HOPS = 60;

const [data = ""] = process.argv.slice(2);
const swarm = defineSwarm({
  name: "relay",
  agents: [
    defineAgent({
      name: "ping",
      commTargets: ["pong"],
      enableEntrypoint: true,
      canCompleteTasks: true,
      async run(mail) {
        await pause();
        const hop = Number(/hop (\d+)/.exec(mail.body)?.[1] ?? 0);
        if (hop >= HOPS) mail.complete(`done after ${hop} hops`);
        else mail.request("pong", "relay", `hop ${hop + 1}`);
      },
    }),
    defineAgent({
      name: "pong",
      commTargets: ["ping"],
      async run(mail) {
        await pause();
        const hop = Number(/hop (\d+)/.exec(mail.body)?.[1] ?? 0);
        mail.reply(`hop ${hop + 1}`);
      },
    }),
  ],
});

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}

const mailroom = await Mailroom.open({ swarm, data, limits: { repetition: 0, recoveries: 1000 } });
const server = await createListener({
  mailroom,
  version: "0.0.0",
  authenticator: {
    authenticate: async () => ({ ok: true, principal: { role: "user", id: "ann", provider: "token" } }),
  },
});
process.stdout.write(`${await server.listen()}\n`);
