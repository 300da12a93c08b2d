/** A server in a process of its own, to be killed. Arguments: data directory. Prints its URL. */
import { createServer } from "../../src/http/index.js";
import { Mailroom } from "../../src/library/mailroom.js";
import { defineAgent } from "../../src/swarm/agent.js";
import { defineSwarm } from "../../src/swarm/define.js";

/** Long enough to be cut often, short enough to end. */
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
const server = await createServer({
  mailroom,
  version: "0.0.0",
  authenticator: {
    authenticate: async () => ({ ok: true, principal: { role: "user", id: "ann", provider: "token" } }),
  },
});
process.stdout.write(`${await server.listen()}\n`);
