/**
 * Three agents of three owners in one mesh swarm, over real TLS on this machine: an invite, a message to all, a task
 * that one agent's mail swarm hands to another's, and a member who is kicked.
 *
 *   npx tsx examples/mesh-three-agents/main.ts
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
// In a project of your own a server does all of this: see docs/mesh.md.
import { defineAgent, defineSwarm, Mailroom } from "../../src/index.js";
import { systemClock, systemIds } from "../../src/library/clock.js";
import {
  createMeshHandler,
  InboundBridge,
  initMesh,
  listen,
  MeshCarrier,
  makeDevCertificates,
  openMesh,
} from "../../src/mesh/index.js";
import { createGuard, createHttpClient } from "../../src/net/index.js";
import { openStore } from "../../src/store/index.js";

const directory = await mkdtemp(join(tmpdir(), "mesh-three-agents-"));
const tls = await makeDevCertificates(join(directory, "tls"), Date.now());

/** Answers whoever asks; a question for bob is handed on to him. */
const clerk = (name: string) =>
  defineSwarm({
    name: `${name}-office`,
    enableInterswarm: true,
    agents: [
      defineAgent({
        name: "clerk",
        enableEntrypoint: true,
        enableInterswarm: true,
        canCompleteTasks: true,
        commTargets: name === "alice" ? ["bob@lab"] : [],
        run: (mail) => {
          if (mail.fromType === "agent") mail.complete(`${mail.from} says: ${mail.body}`);
          else if (name === "alice") {
            mail.request("bob@lab", "A question", mail.body);
            mail.await();
          } else mail.complete(`I am ${name}, and I read: ${mail.body.split("\n")[0]}`);
        },
      }),
    ],
  });

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function openAgent(name: string) {
  const home = join(directory, name);
  const port = await freePort();
  initMesh({ directory: home, agentId: name, endpoint: `https://localhost:${port}/swarm`, dev: true });
  const store = await openStore({ directory: home });
  const http = createHttpClient({
    clock: systemClock,
    guard: createGuard({ allow: ["loopback"] }),
    tls: { extraCaFile: tls.ca },
  });
  const report = ({ message }: { message: string }) => console.error(`${name}: ${message}`);
  const node = await openMesh({ directory: home, store, http, clock: systemClock, ids: systemIds, report });
  const carrier = new MeshCarrier(node, store.mesh);
  const mailroom = await Mailroom.open({ swarm: clerk(name), store, carriers: [carrier] });
  carrier.start(mailroom.runtime);
  const bridge = new InboundBridge({ node, runtime: mailroom.runtime, store });
  await bridge.start();
  const pem = { cert: readFileSync(tls.cert, "utf8"), key: readFileSync(tls.key, "utf8") };
  const listener = await listen({ handle: createMeshHandler(node), host: "localhost", port, ...pem });
  /** Resolves with the next message for which `isWanted` holds. */
  const received = (isWanted: (content: string) => boolean) =>
    new Promise<string>((resolve) => {
      const stop = node.onMessage(({ content, type }) => {
        if (type !== "message" || !isWanted(content)) return;
        stop();
        resolve(content);
      });
    });
  const close = async () => {
    await listener.close();
    await bridge.stop();
    await mailroom.close();
    await node.close();
    await http.close();
    await store.close();
  };
  return { node, mailroom, received, close };
}

const [alice, bob, carol] = await Promise.all(["alice", "bob", "carol"].map(openAgent));
assert(alice !== undefined && bob !== undefined && carol !== undefined);

// Alice makes the swarm; one invite for two.
const lab = await alice.node.create("Lab");
const invite = await alice.node.invite(lab.id, { maxUses: 2 });
await bob.node.join(invite);
await carol.node.join(invite);
console.log("members:", [...carol.node.swarm(lab.id).members.keys()].join(", "));

// To everybody, signed. Each answer comes from the swarm behind the agent.
const answers = [bob, carol].map((_, index) => {
  const name = index === 0 ? "bob" : "carol";
  return alice.received((content) => content.startsWith(`I am ${name}`));
});
await alice.node.send({ swarmId: lab.id, content: "Who reads this?" });
console.log("answers:", await Promise.all(answers));

// A task of Alice's own swarm, in which her clerk asks bob@lab.
const { status, response } = await alice.mailroom.user("ann").ask("What is the news?");
console.log("task:", response);
assert.equal(status, "completed");
assert.match(response, /^bob@lab says: I am bob/u);

// Out is out, whether they answer or not.
await alice.node.kick(lab.id, "carol", "the example is over");
assert.deepEqual([...alice.node.swarm(lab.id).members.keys()], ["alice", "bob"]);

for (const agent of [alice, bob, carol]) await agent.close();
await rm(directory, { recursive: true });
console.log("all of it as it should be");
