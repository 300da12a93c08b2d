/**
 * Two swarms, each on a server of its own: a desk in `alpha` that asks a librarian in `beta`.
 *
 *   npx tsx examples/two-swarms/main.ts
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "../../src/cli/server/start.js";
// In a project of your own: from "mailroom/client", and two terminals with `mailroom server`.
import { MailClient } from "../../src/client/index.js";
import { loadConfig } from "../../src/config/index.js";

const directory = mkdtempSync(join(tmpdir(), "two-swarms-"));
const serve = (swarmName: string) => {
  const swarm = join(import.meta.dirname, "swarms.json");
  const flags = { dev: true, port: 0, data: join(directory, swarmName), swarm, swarmName };
  const { settings } = loadConfig({ flags, env: {}, directory });
  return startServer(settings, directory);
};

const alpha = await serve("alpha");
const beta = await serve("beta");

// Each makes the other known, with the token under which it may call there.
const admin = (url: string) => new MailClient(url, { token: "admin:root" });
await admin(alpha.url).registerSwarm({ name: "beta", baseUrl: beta.url, authToken: "agent:alpha" });
await admin(beta.url).registerSwarm({ name: "alpha", baseUrl: alpha.url, authToken: "agent:beta" });

const answer = await new MailClient(alpha.url).postMessage("When was Moby-Dick published?");
console.log(answer.response);

await alpha.close();
await beta.close();
rmSync(directory, { recursive: true, force: true });
assert.equal(answer.response, "The library of beta says: Moby-Dick was published in 1851.");
