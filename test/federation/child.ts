/**
 * A server of its own, to be killed.
 *
 *   node child.js '{"name": "beta", "others": ["alpha"], "data": "…", "port": 8001, "settings": {…}}'
 *
 * Says `ready` when it listens. Its slow agent answers within `slow` milliseconds; what it is asked with `[hold]`, when
 * the process gets SIGUSR2.
 */
import type { FederationSettings } from "../../src/federation/index.js";
import { houseSwarm, Slow } from "./agents.js";
import { openHouse } from "./house.js";

export interface ChildOptions {
  readonly name: string;
  readonly others: readonly string[];
  readonly data: string;
  readonly port: number;
  readonly settings: Partial<FederationSettings>;
  readonly slow?: number;
  readonly replyTime?: number;
}

// Handed over by the test that starts it.
const options = JSON.parse(process.argv[2] ?? "{}") as ChildOptions;
const slow = new Slow();
setInterval(() => slow.release(), options.slow ?? 50).unref();
process.on("SIGUSR2", () => slow.release(true));
const env: Record<string, string> = {};
for (const [name, value] of Object.entries(process.env)) if (value !== undefined) env[name] = value;
const house = await openHouse({
  swarm: houseSwarm(options.name, options.others, slow),
  data: options.data,
  port: options.port,
  settings: options.settings,
  env,
  // A message must not be given up because the process was killed while it was handled.
  limits: { recoveries: 1_000, replyTime: options.replyTime ?? 600_000 },
  server: { limits: { failedAuthentications: 0 } },
  onProblem: ({ code, message }) => process.stderr.write(`${options.name}: ${code}: ${message}\n`),
});
process.on("SIGTERM", () => {
  house.close().then(() => process.exit(0));
});
process.stdout.write("ready\n");
