/** MAIL swarms behind mesh agents, each with a mailroom and the bridge in both directions. */
import { defineAgent, defineSwarm, type Mail, Mailroom, type MailroomOptions } from "../../src/index.js";
import { MeshCarrier } from "../../src/mesh/bridge/carrier.js";
import { InboundBridge, type InboundOptions } from "../../src/mesh/bridge/inbound.js";
import type { Agent, Mesh } from "./harness.js";

export interface House {
  readonly mailroom: Mailroom;
  readonly bridge: InboundBridge;
}

type HouseOptions = Partial<Omit<InboundOptions, "node" | "runtime">> &
  Pick<MailroomOptions, "limits"> & {
    /** Runs between opening the mailroom and connecting it. */
    readonly beforeStart?: () => Promise<void>;
  };

export class Houses implements AsyncDisposable {
  readonly #mesh: Mesh;
  readonly #houses: House[] = [];

  constructor(mesh: Mesh) {
    this.#mesh = mesh;
  }

  async open(
    { agent, store }: Agent,
    swarm: MailroomOptions["swarm"],
    { limits, beforeStart, ...options }: HouseOptions = {},
  ): Promise<House> {
    const carrier = new MeshCarrier(agent, store.mesh);
    const mailroom = await Mailroom.open({
      swarm,
      store,
      clock: this.#mesh.clock,
      carriers: [carrier],
      onProblem: () => undefined,
      ...(limits !== undefined && { limits }),
    });
    await beforeStart?.();
    carrier.start(mailroom.runtime);
    const bridge = new InboundBridge({ agent, runtime: mailroom.runtime, store, ...options });
    await bridge.start();
    const house = { mailroom, bridge };
    this.#houses.push(house);
    return house;
  }

  /** Runs everything that needs no time to pass. */
  async settle(): Promise<void> {
    for (let round = 0; round < 40; round += 1) {
      await this.#mesh.settle();
      for (const { bridge } of this.#houses) await bridge.quiet();
      await new Promise(setImmediate);
    }
  }

  /** Lets time pass, timer by timer, with all consequences. */
  async pass(ms: number): Promise<void> {
    const { clock } = this.#mesh;
    const until = clock.now() + ms;
    do await this.settle();
    while (clock.step(until));
    clock.jump(until - clock.now());
  }

  async close({ bridge, mailroom }: House): Promise<void> {
    await bridge.stop();
    await mailroom.close({ grace: 0 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const house of this.#houses) await this.close(house);
  }
}

/** A swarm of one agent, which can complete tasks. */
export function shopOf(run: (mail: Mail) => void | Promise<void>) {
  return defineSwarm({
    name: "shop",
    agents: [
      defineAgent({ name: "owner", enableEntrypoint: true, canCompleteTasks: true, commTargets: [], run }),
    ],
  });
}
