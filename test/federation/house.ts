/** A whole server with its swarm: what `mailroom server` puts together, with everything at hand. */
import { join } from "node:path";
import { devAuthenticator } from "../../src/auth/index.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { Clock } from "../../src/engine/ports.js";
import { Federation, type FederationSettings } from "../../src/federation/index.js";
import { createServer, type MailroomServer, type ServerOptions } from "../../src/http/index.js";
import { systemClock, systemIds } from "../../src/library/clock.js";
import { Mailroom, type MailroomOptions } from "../../src/library/mailroom.js";
import type { Resolve } from "../../src/net/index.js";
import { createLocalBus, type Durability, openStore } from "../../src/store/index.js";

export interface HouseOptions {
  readonly swarm: SwarmDefinition;
  /** A directory; in memory unless given. */
  readonly data?: string;
  readonly durability?: Durability;
  readonly port?: number;
  readonly settings?: Partial<FederationSettings>;
  readonly limits?: MailroomOptions["limits"];
  readonly env?: Readonly<Record<string, string>>;
  readonly registryFile?: string;
  readonly isNameTaken?: (name: string) => boolean;
  readonly signs?: boolean;
  /** An authority that it trusts beside the public ones, as PEM. */
  readonly ca?: string;
  readonly resolve?: Resolve;
  readonly clock?: Clock;
  readonly server?: Partial<ServerOptions>;
  readonly onProblem?: (problem: { code: string; message: string }) => void;
}

export interface House {
  readonly url: string;
  readonly mailroom: Mailroom;
  readonly federation: Federation;
  readonly server: MailroomServer;
  close(): Promise<void>;
}

/** Short times, so that tests need no patience of their own. */
export const QUICK: Partial<FederationSettings> = {
  deliveryTime: 3_000,
  attemptTime: 1_000,
  healthInterval: 100,
  healthTime: 1_000,
  failuresToInactive: 2,
};

export async function openHouse(options: HouseOptions): Promise<House> {
  const { swarm, data, onProblem = () => {} } = options;
  const store =
    data === undefined
      ? await openStore({ path: ":memory:" })
      : await openStore({ directory: data, durability: options.durability ?? "fast" });
  const bus = createLocalBus();
  const { clock = systemClock } = options;
  const federation = await Federation.open({
    store,
    clock,
    ids: systemIds,
    swarm: swarm.name,
    settings: { ...QUICK, ...options.settings },
    env: options.env ?? {},
    report: onProblem,
    ...(data !== undefined && options.signs !== false && { keyFile: join(data, "federation.key") }),
    ...(options.registryFile !== undefined && { registryFile: options.registryFile }),
    ...(options.isNameTaken !== undefined && { isNameTaken: options.isNameTaken }),
    ...(options.ca !== undefined && { tls: { extraCa: options.ca } }),
    ...(options.resolve !== undefined && { resolve: options.resolve }),
  });
  const mailroom = await Mailroom.open({
    swarm,
    store,
    bus,
    clock,
    carriers: [federation.carrier],
    systemActions: federation.systemActions,
    onProblem,
    ...(options.limits !== undefined && { limits: options.limits }),
  });
  federation.start(mailroom.runtime, bus);
  const server = await createServer({
    mailroom,
    authenticator: devAuthenticator(),
    version: "0.0.0",
    federation,
    heartbeat: 1_000,
    ...options.server,
  });
  const url = await server.listen({ port: options.port ?? 0 });
  return {
    url,
    mailroom,
    federation,
    server,
    async close() {
      await server.close();
      await federation.close();
      await mailroom.close({ grace: 0 });
      await bus.close();
      await store.close();
    },
  };
}

/** Makes each known to the others, as an admin would. */
export async function introduce(...houses: readonly House[]): Promise<void> {
  for (const house of houses) {
    for (const other of houses) {
      if (other === house) continue;
      await house.federation.registry.register({
        name: other.mailroom.swarm.name,
        baseUrl: other.url,
        authToken: `agent:${house.mailroom.swarm.name}`,
        volatile: true,
      });
    }
  }
}
