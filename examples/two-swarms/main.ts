/**
 * Two swarms, each on a server of its own: a desk in `alpha` that asks a librarian in `beta`.
 *
 *   npx tsx examples/two-swarms/main.ts
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSwarm } from "agent-mailroom";
import { MailClient } from "agent-mailroom/client";
import { createServer } from "agent-mailroom/server";

const directory = mkdtempSync(join(tmpdir(), "two-swarms-"));
const serve = async (name: string) => {
  const { definition } = await loadSwarm(join(import.meta.dirname, "swarms.json"), name);
  const server = await createServer({
    swarm: definition,
    data: join(directory, name),
    dev: true,
    settings: { log: { level: "warn" } },
  });
  return { url: await server.listen({ port: 0 }), close: () => server.close() };
};

const alpha = await serve("alpha");
const beta = await serve("beta");

// Each server registers the other, with its token for it.
const admin = (url: string) => new MailClient(url, { token: "admin:root" });
await admin(alpha.url).registerSwarm({ name: "beta", baseUrl: beta.url, authToken: "agent:alpha" });
await admin(beta.url).registerSwarm({ name: "alpha", baseUrl: alpha.url, authToken: "agent:beta" });

const answer = await new MailClient(alpha.url).postMessage("When was Moby-Dick published?");
console.log(answer.response);

await alpha.close();
await beta.close();
rmSync(directory, { recursive: true, force: true });
assert.equal(answer.response, "The library of beta says: Moby-Dick was published in 1851.");
