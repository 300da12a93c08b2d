/**
 * Three nodes and a fourth that is kicked and admitted again, under random transfers, kicks, key changes, restarts and cuts
 * of the network. Deterministic for a seed: virtual time, real stores, and the handler of the listener.
 */
import { hasCode } from "../../src/base/index.js";
import { type KeyPair, keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import type { InviteFiles } from "../../src/mesh/invite/files.js";
import { type Agent, inMemory, Mesh } from "./harness.js";

const NODES = ["alice", "bob", "carol"] as const;
const GUEST = "dora";
const ALL = [...NODES, GUEST];
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

export interface ChaosReport {
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

/** A small generator, so that a seed names a run. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 12), 0x297a2d39);
    mixed ^= mixed >>> 15;
    return (mixed >>> 0) / 2 ** 32;
  };
}

interface Keys {
  readonly pair: KeyPair;
  readonly former: readonly KeyPair[];
}

class Chaos {
  readonly #mesh = new Mesh();
  readonly #random: () => number;
  readonly #agents = new Map<string, Agent>();
  readonly #stores = new Map<string, Agent["store"]>();
  readonly #keys = new Map<string, Keys>();
  readonly #inviteFiles = new Map<string, InviteFiles>();
  /** Accepted messages between nodes, with their recipients. */
  readonly #accepted = new Map<string, readonly string[]>();
  readonly #counts: Record<string, number> = {};
  #swarm = "";
  #sent = 0;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  async run(steps: number): Promise<ChaosReport> {
    try {
      for (const name of ALL) await this.#start(name);
      const others = ALL.slice(1).map((name) => this.#agent(name));
      this.#swarm = await this.#mesh.swarm(this.#agent("alice"), ...others);
      for (let step = 0; step < steps; step += 1) await this.#step();
      return { violations: await this.#settle(), counts: this.#counts };
    } finally {
      await this.#mesh.close();
    }
  }

  #agent(name: string): Agent {
    const agent = this.#agents.get(name);
    if (agent === undefined) throw new Error(`${name} is not running`);
    return agent;
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }

  /** Nodes that take themselves for the master. */
  #masters(): string[] {
    return NODES.filter(
      (name) => this.#agents.get(name)?.agent.context.view.swarms.get(this.#swarm)?.master === name,
    );
  }

  async #start(name: string): Promise<void> {
    if (this.#agents.has(name)) return;
    const keys = this.#keys.get(name);
    const files = this.#inviteFiles.get(name) ?? inMemory();
    this.#inviteFiles.set(name, files);
    const pairs = keys === undefined ? {} : { pair: keys.pair, formerPairs: keys.former };
    const parts = { ...pairs, inviteFiles: files };
    const agent = await this.#mesh.agent(name, { sealMessages: true }, this.#stores.get(name), parts);
    this.#stores.set(name, agent.store);
    if (keys === undefined) this.#keys.set(name, { pair: agent.pair, former: [] });
    this.#agents.set(name, agent);
    void agent.agent.syncAll();
  }

  #stop(name: string): void {
    const agent = this.#agents.get(name);
    if (agent === undefined) return;
    this.#mesh.crash(agent);
    this.#agents.delete(name);
  }

  async #step(): Promise<void> {
    const roll = this.#random();
    const act = roll < 0.4 ? "send" : (this.#pick(ACTS) ?? "send");
    // Most operations of a master come from one, some from others.
    const masters = MASTERS.has(act) && this.#random() < 0.9 ? this.#masters() : [];
    const name = this.#pick(masters.length > 0 ? masters : NODES) ?? "alice";
    this.#counts[act] = (this.#counts[act] ?? 0) + 1;
    try {
      await this.#act(act, name);
    } catch (error) {
      // Operations that the state of the swarm does not allow at this moment.
      if (!hasCode(error, ...NOT_NOW)) throw error;
      const key = `refused: ${error.code}`;
      this.#counts[key] = (this.#counts[key] ?? 0) + 1;
    }
    const longest = this.#random() < 0.1 ? HOUR : 20 * SECOND;
    await this.#mesh.pass(Math.floor(this.#random() * longest));
  }

  async #act(act: (typeof ACTS)[number] | "send", name: string): Promise<void> {
    const swarmId = this.#swarm;
    switch (act) {
      case "stop":
        return this.#stop(name);
      case "start":
        return this.#start(name);
      case "cut":
        this.#mesh.down.add(`${name}.example.com`);
        return;
      case "mend":
        this.#mesh.down.delete(`${name}.example.com`);
        return;
      default:
    }
    const agent = this.#agents.get(name);
    if (agent === undefined) return;
    switch (act) {
      case "send":
        return this.#send(agent);
      case "transfer":
        return agent.agent.transfer(swarmId, this.#pick(NODES.filter((one) => one !== name)) ?? "");
      case "kick":
        return agent.agent.kick(swarmId, GUEST, "chaos");
      case "admit":
        await agent.agent.unban(swarmId, GUEST);
        await this.#agents.get(GUEST)?.agent.join(await agent.agent.invite(swarmId));
        return;
      case "rotate":
        return this.#rotate(agent);
      default:
        act satisfies never;
    }
  }

  async #send({ name, agent }: Agent): Promise<void> {
    this.#sent += 1;
    const content = `${name} ${this.#sent}`;
    const to = this.#random() < 0.3 ? "broadcast" : (this.#pick(NODES.filter((one) => one !== name)) ?? "");
    const { recipients } = await agent.send({ swarmId: this.#swarm, to, content });
    this.#accepted.set(content, recipients);
  }

  async #rotate({ name, agent }: Agent): Promise<void> {
    const keys = this.#keys.get(name);
    if (keys === undefined) return;
    const seed = Buffer.alloc(32, 1);
    seed.write(`${name} ${this.#random()}`.slice(0, 32));
    const pair = keyPairFromSeed(seed);
    const install = (): void => {
      this.#keys.set(name, { pair, former: [keys.pair, ...keys.former] });
    };
    await agent.rotateKey({ pair, install });
  }

  /** Everybody is back, and time passes. Returns what is not as it should be. */
  async #settle(): Promise<string[]> {
    this.#mesh.down.clear();
    for (const name of ALL) await this.#start(name);
    await this.#mesh.pass(6 * HOUR);
    const violations: string[] = [];
    const views = new Map(NODES.map((name) => [name, this.#view(name)]));
    const [first] = views.values();
    for (const [name, view] of views) {
      if (view !== first) violations.push(`${name} sees ${view}, alice ${first}`);
      const { store } = this.#agent(name);
      for (const { lane, reason } of await store.outbox.list("mesh", { status: "waiting", limit: 100 })) {
        violations.push(`${name} still waits in ${lane}: ${reason}`);
      }
    }
    for (const name of NODES) {
      const inbox = (await this.#agent(name).store.mesh.inbox({ limit: 100_000 })).filter(
        ({ type }) => type === "message",
      );
      for (const [content, recipients] of this.#accepted) {
        const copies = inbox.filter((one) => one.content === content).length;
        const wanted = recipients.includes(name) ? 1 : 0;
        if (copies !== wanted) violations.push(`${name} has ${copies} of '${content}' instead of ${wanted}`);
      }
    }
    this.#counts.messages = this.#accepted.size;
    return violations;
  }

  #view(name: string): string {
    try {
      const { master, members } = this.#agent(name).agent.swarm(this.#swarm);
      const list = [...members.values()].map(
        ({ agentId, publicKey }) => `${agentId} ${publicKey.slice(0, 6)}`,
      );
      return `${master} of ${list.sort().join(", ")}`;
    } catch (error) {
      if (hasCode(error, "swarm_not_found")) return "no swarm";
      throw error;
    }
  }
}

/** Operations that are refused in some states of the swarm. */
const NOT_NOW = [
  "not_master",
  "is_master",
  "transfer_open",
  "member_not_found",
  "join_refused",
  "peer_unreachable",
  "invalid_invite",
] as const;

const MASTERS: ReadonlySet<string> = new Set(["transfer", "kick", "admit"]);

const ACTS = [
  "stop",
  "start",
  "start",
  "cut",
  "mend",
  "mend",
  "transfer",
  "kick",
  "admit",
  "rotate",
] as const;

export function runChaos(seed: number, steps: number): Promise<ChaosReport> {
  return new Chaos(seed).run(steps);
}
