/**
 * A server in its own process, to be killed.
 *
 * node child.js '{"name": "beta", "others": ["alpha"], "data": "…", "port": 8001, "settings": {…}}'
 *
 * Prints `ready` when it listens. Its slow agent answers within `slow` milliseconds; a request with `[hold]` is
 * answered when the process gets SIGUSR2.
 */
import type { FederationSettings } from "../../src/federation/index.js";
import { Slow, testSwarm } from "./agents.js";
import { openTestServer } from "./servers.js";

export interface ChildOptions {
  readonly name: string;
  readonly others: readonly string[];
  readonly data: string;
  readonly port: number;
  readonly settings: Partial<FederationSettings>;
  readonly slow?: number;
  readonly replyTimeout?: number;
}

// Passed by the test that starts it.
const options = JSON.parse(process.argv[2] ?? "{}") as ChildOptions;
const slow = new Slow();
setInterval(() => slow.release(), options.slow ?? 50).unref();
process.on("SIGUSR2", () => slow.release(true));
const env: Record<string, string> = {};
for (const [name, value] of Object.entries(process.env)) if (value !== undefined) env[name] = value;
const server = await openTestServer({
  swarm: testSwarm(options.name, options.others, slow),
  data: options.data,
  port: options.port,
  settings: options.settings,
  env,
  // A message must not be abandoned because the process was killed while handling it.
  limits: { recoveries: 1_000, replyTimeout: options.replyTimeout ?? 600_000 },
  server: { limits: { failedAuthentications: 0 } },
  onProblem: ({ code, message }) => process.stderr.write(`${options.name}: ${code}: ${message}\n`),
});
process.on("SIGTERM", () => {
  server.close().then(() => process.exit(0));
});
process.stdout.write("ready\n");
