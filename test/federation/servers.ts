/** A complete server with its swarm, like `mailroom server`, with access to its parts. */
import { join } from "node:path";
import { devAuthenticator } from "../../src/auth/index.js";
import type { Clock } from "../../src/base/index.js";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { createLocalBus } from "../../src/bus/index.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import { Federation, type FederationSettings } from "../../src/federation/index.js";
import { Mailroom, type MailroomOptions } from "../../src/library/mailroom.js";
import type { Resolve } from "../../src/net/index.js";
import { type Durability, openStore } from "../../src/store/index.js";
import { createListener, type TestListener, type TestListenerOptions } from "../kit/listener.js";

export interface TestServerOptions {
  readonly swarm: SwarmDefinition;
  /** A directory. Default: in memory. */
  readonly data?: string;
  readonly durability?: Durability;
  readonly port?: number;
  readonly settings?: Partial<FederationSettings>;
  readonly limits?: MailroomOptions["limits"];
  readonly env?: Readonly<Record<string, string>>;
  readonly registryFile?: string;
  readonly isNameTaken?: (name: string) => boolean;
  readonly signs?: boolean;
  /** PEM of a CA that it trusts in addition to the public ones. */
  readonly ca?: string;
  readonly resolve?: Resolve;
  readonly clock?: Clock;
  readonly server?: Partial<TestListenerOptions>;
  readonly onProblem?: (problem: { code: string; message: string }) => void;
}

export interface TestServer {
  readonly url: string;
  readonly mailroom: Mailroom;
  readonly federation: Federation;
  readonly server: TestListener;
  close(): Promise<void>;
}

/** Unreachable swarms are noticed soon. A swarm that answers has time for it, however busy the machine is. */
const QUICK: Partial<FederationSettings> = {
  deliveryTimeout: 3_000,
  attemptTimeout: 30_000,
  healthInterval: 100,
  healthTimeout: 30_000,
  failuresToInactive: 2,
};

export async function openTestServer(options: TestServerOptions): Promise<TestServer> {
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
  const server = await createListener({
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

/** Registers each server with the others, like an admin. */
export async function introduce(...servers: readonly TestServer[]): Promise<void> {
  for (const server of servers) {
    for (const other of servers) {
      if (other === server) continue;
      await server.federation.registry.register({
        name: other.mailroom.swarm.name,
        baseUrl: other.url,
        authToken: `agent:${server.mailroom.swarm.name}`,
        volatile: true,
      });
    }
  }
}
