/** Three real processes over real TLS: operations, unreachable members, partitions and SIGKILL. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import type { HttpClient } from "../../src/net/index.js";
import { Processes, type Running, Wire } from "./agent-processes.js";
import { tokenOf } from "./harness.js";
import { eventually, freePort, localClient } from "./kit.js";

// Real processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let processes: Processes;
let http: HttpClient;

beforeAll(async () => {
  processes = await Processes.prepare();
  http = localClient({ tls: { extraCaFile: join(processes.tls, "dev-ca.pem") } });
});
afterAll(async () => {
  await processes.end();
  await http.close();
});

describe("three agents in three processes", () => {
  it("[ASP-OPER-06, ASP-OURS-04] three processes join, talk, kick and transfer, with members unreachable and killed in between", async () => {
    const ports = [await freePort(), await freePort(), await freePort()] as const;
    let [alice, bob, carol] = await Promise.all([
      processes.start("alice", ports[0]),
      processes.start("bob", ports[1]),
      processes.start("carol", ports[2]),
    ]);
    const lab = String(await alice.call("create", "Lab"));
    await bob.call("join", String(await alice.call("invite", lab)));
    await carol.call("join", String(await alice.call("invite", lab)));
    const all = ["alice", "bob", "carol"];
    for (const agent of [alice, bob, carol]) {
      await eventually(() => agent.call("swarms"), [{ id: lab, master: "alice", members: all }]);
    }

    await alice.call("send", lab, "broadcast", "hello all");
    for (const agent of [bob, carol]) {
      await eventually(() => agent.call("texts", lab), ["hello all"]);
    }

    // Carol is killed. Messages to her wait, even after the sender was also killed.
    await carol.kill();
    await alice.call("send", lab, "carol", "while you were away");
    await alice.call("transfer", lab, "bob");
    await eventually(() => bob.call("swarms"), [{ id: lab, master: "bob", members: all }]);
    await alice.kill();
    [alice, carol] = await Promise.all([
      processes.start("alice", ports[0]),
      processes.start("carol", ports[2]),
    ]);
    await alice.call("retry", `https://localhost:${ports[2]}`);
    await eventually(() => carol.call("texts", lab), ["hello all", "while you were away"]);
    await eventually(() => carol.call("swarms"), [{ id: lab, master: "bob", members: all }]);

    // The new master kicks an unreachable member.
    await alice.kill();
    await bob.call("kick", lab, "alice");
    await eventually(() => carol.call("swarms"), [{ id: lab, master: "bob", members: ["bob", "carol"] }]);
    alice = await processes.start("alice", ports[0]);
    await bob.call("retry", `https://localhost:${ports[0]}`);
    await eventually(() => alice.call("swarms"), []);

    await carol.call("leave", lab);
    await eventually(() => bob.call("swarms"), [{ id: lab, master: "bob", members: ["bob"] }]);
  });
});

describe("three agents with links that can be cut", () => {
  const all = ["ann", "ben", "cleo"];
  const agents = new Map<string, Running>();
  /** By caller and callee. */
  const wires = new Map<string, Wire>();
  let ports: Map<string, number>;

  beforeAll(async () => {
    ports = new Map(await Promise.all(all.map(async (name) => [name, await freePort()] as const)));
    for (const from of all) {
      for (const to of all) if (from !== to) wires.set(`${from} ${to}`, await Wire.to(portOf(to)));
    }
    await Promise.all(all.map(start));
  });
  afterAll(async () => {
    for (const wire of wires.values()) await wire.close();
  });

  const portOf = (name: string): number => ports.get(name) ?? 0;
  const agent = (name: string): Running => agents.get(name) ?? expect.fail(`no agent is called ${name}`);
  const wiresBetween = (one: string, other: string): Wire[] =>
    [`${one} ${other}`, `${other} ${one}`].map((ends) => wires.get(ends) ?? expect.fail(`no wire ${ends}`));

  async function start(name: string): Promise<void> {
    const detours = Object.fromEntries(
      all.filter((to) => to !== name).map((to) => [portOf(to), wires.get(`${name} ${to}`)?.port ?? 0]),
    );
    agents.set(name, await processes.start(name, portOf(name), detours));
  }

  /** A swarm of the three that ann created. */
  async function swarmOfAll(name: string): Promise<string> {
    const id = String(await agent("ann").call("create", name));
    for (const joiner of ["ben", "cleo"]) {
      await agent(joiner).call("join", String(await agent("ann").call("invite", id)));
    }
    for (const member of all) await agrees(member, { id, master: "ann", members: all });
    return id;
  }

  const swarmAt = async (name: string, id: string): Promise<unknown> => {
    const swarms = await agent(name).call("swarms");
    return Array.isArray(swarms) ? swarms.find((swarm) => swarm.id === id) : undefined;
  };
  const agrees = (name: string, swarm: { id: string; master: string; members: string[] }) =>
    eventually(() => swarmAt(name, swarm.id), swarm);
  const textsAt = async (name: string, id: string): Promise<string[]> => {
    const texts = await agent(name).call("texts", id);
    return Array.isArray(texts) ? texts.map(String).sort() : [];
  };
  /** Skips the retry delay of the outbox after a failure. */
  async function mend(): Promise<void> {
    for (const wire of wires.values()) wire.mend();
    for (const from of all) {
      for (const to of all) {
        if (from !== to) await agent(from).call("retry", `https://localhost:${portOf(to)}`);
      }
    }
  }

  it("[ASP-OURS-04] after a partition all agents agree on what each did alone", async () => {
    const lab = await swarmOfAll("Lab");
    for (const wire of wires.values()) wire.cut();
    await agent("ann").call("send", lab, "broadcast", "from ann");
    await agent("ann").call("transfer", lab, "ben");
    await agent("ben").call("send", lab, "broadcast", "from ben");
    await agent("cleo").call("send", lab, "broadcast", "from cleo");
    // Every agent tried and is isolated.
    await eventually(async () => [...wires.values()].every(({ refused }) => refused > 0), true);
    for (const name of all) {
      expect(await textsAt(name, lab)).toEqual([]);
      expect(await swarmAt(name, lab)).toEqual({ id: lab, master: "ann", members: all });
    }

    await mend();
    for (const name of all) {
      await agrees(name, { id: lab, master: "ben", members: all });
      const others = all.filter((other) => other !== name).map((other) => `from ${other}`);
      await eventually(() => textsAt(name, lab), others);
    }
  });

  it("[ASP-OURS-04] two agents that reach only the third lose no member and no message", async () => {
    const lab = await swarmOfAll("Pairs");
    const heard = new Map(all.map((name) => [name, [] as string[]]));
    for (const [master, other, third] of [
      ["ann", "ben", "cleo"],
      ["cleo", "ann", "ben"],
      ["ben", "cleo", "ann"],
    ] as const) {
      const cut = wiresBetween(master, other);
      for (const wire of cut) wire.cut();
      const before = new Map([...heard].map(([name, texts]) => [name, [...texts]]));
      for (const name of [master, other]) {
        const text = `${name} while ${master} and ${other} are cut off`;
        await agent(name).call("send", lab, "broadcast", text);
        for (const [hearer, texts] of heard) if (hearer !== name) texts.push(text);
      }
      // Not every agent receives it directly from its author.
      await agent(master).call("transfer", lab, third);
      for (const name of [master, third]) await agrees(name, { id: lab, master: third, members: all });
      await eventually(() => textsAt(third, lab), heard.get(third)?.sort());
      await eventually(async () => cut.map(({ refused }) => refused > 0), [true, true]);
      for (const name of [master, other]) expect(await textsAt(name, lab)).toEqual(before.get(name)?.sort());

      await mend();
      for (const name of all) {
        await agrees(name, { id: lab, master: third, members: all });
        await eventually(() => textsAt(name, lab), heard.get(name)?.sort());
      }
    }
  });

  it("[ASP-OPER-09] only the master approves and rejects joins", async () => {
    const den = String(await agent("ann").call("create", "Den", "approval"));
    const invite = String(await agent("ann").call("invite", den));
    for (const name of ["ben", "cleo"]) {
      await expect(agent(name).call("join", invite)).rejects.toThrow("approv");
    }
    expect(await agent("ann").call("pending", den)).toEqual(["ben", "cleo"]);
    await agent("ann").call("approve", den, "ben");
    await agent("ann").call("reject", den, "cleo");
    await agent("ben").call("join", invite);
    await expect(agent("cleo").call("join", invite)).rejects.toThrow("NOT_AUTHORIZED");
    for (const name of ["ann", "ben"])
      await agrees(name, { id: den, master: "ann", members: ["ann", "ben"] });
    expect(await swarmAt("cleo", den)).toBeUndefined();
    await expect(agent("ben").call("approve", den, "cleo")).rejects.toThrow("master");
  });

  it("messages of a muted agent are dropped without the agent noticing, until it is unmuted", async () => {
    const lab = await swarmOfAll("Mutes");
    await agent("ben").call("mute", "ann");
    const unheard = String(await agent("ann").call("send", lab, "broadcast", "unheard"));
    await eventually(() => agent("ann").call("delivered", unheard), true);
    expect(await textsAt("ben", lab)).toEqual([]);
    expect(await textsAt("cleo", lab)).toEqual(["unheard"]);
    expect(await agent("ben").call("unmute", "ann")).toBe(true);
    await agent("ann").call("send", lab, "broadcast", "heard");
    await eventually(() => textsAt("ben", lab), ["heard"]);
  });

  it("a new key is accepted by all, also by members that missed the announcement, and after a restart", async () => {
    const lab = await swarmOfAll("Keys");
    for (const wire of wiresBetween("ann", "ben")) wire.cut();
    const old = await agent("ben").call("key", lab, "ann");
    const next = await agent("ann").call("rotate");
    expect(next).not.toBe(old);
    await agent("ann").call("send", lab, "broadcast", "with a new key");
    await eventually(() => textsAt("cleo", lab), ["with a new key"]);
    expect(await agent("ben").call("key", lab, "ann")).toBe(old);
    await agent("ann").kill();
    await start("ann");
    await agent("ann").call("send", lab, "broadcast", "after a restart");
    await eventually(() => textsAt("cleo", lab), ["after a restart", "with a new key"]);
    await mend();
    await eventually(() => textsAt("ben", lab), ["after a restart", "with a new key"]);
    for (const name of all) expect(await agent(name).call("key", lab, "ann")).toBe(next);
  });
});

describe("one agent that all others reach", () => {
  let port: number;
  let master: Running;

  beforeAll(async () => {
    port = await freePort();
    master = await processes.start("master", port);
  });

  it("[ASP-OURS-02] twenty races of five joining agents over TLS have one winner each (decision G9)", async () => {
    for (let race = 0; race < 20; race += 1) {
      const id = String(await master.call("create", `Race ${race}`));
      const token = tokenOf(String(await master.call("invite", id, "1")));
      const answers = await Promise.all(
        Array.from({ length: 5 }, (_, index) => {
          const public_key = keyPairFromSeed(Buffer.alloc(32, index + 1)).publicKey.text;
          const sender = { agent_id: `j${index}`, endpoint: "https://localhost:1/swarm", public_key };
          const body = JSON.stringify({
            type: "system",
            action: "join_request",
            invite_token: token,
            sender,
          });
          return http.request(`https://localhost:${port}/swarm/join`, { method: "POST", body });
        }),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 403)).toHaveLength(4);
    }
  });

  it("[ASP-SECU-05] an agent refuses a certificate of an unknown CA", async () => {
    const strict = localClient();
    await expect(strict.request(`https://localhost:${port}/swarm/info`)).rejects.toMatchObject({
      code: "tls_failed",
    });
    await strict.close();
  });
});
