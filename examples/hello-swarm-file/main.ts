/**
 * The same little shop, from a swarm file: one agent follows a script, the other is code.
 *
 *   npx tsx examples/hello-swarm-file/main.ts
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { loadSwarm, Mailroom } from "agent-mailroom";

const { definition, warnings } = await loadSwarm(fileURLToPath(new URL("swarms.json", import.meta.url)));
for (const { path, message } of warnings) console.warn(`${path}: ${message}`);

const mailroom = await Mailroom.open({ swarm: definition, data: false });
const ann = mailroom.user("ann");
const saturday = await ann.ask("When are you open on Saturday?");
const lost = await ann.ask("Do you sell umbrellas?");
console.log(saturday.response);
console.log(lost.response);
await mailroom.close();

assert.equal(saturday.response, "On Saturday we are open: 10 to 16.");
assert.equal(lost.response, "Ask me when we are open on a certain day.");
