/** Mail between MAIL swarms: routes, carrier and registry. */
import { join } from "node:path";
import { type CreateContext, defineExtension, type Extension } from "../../extension/index.js";
import {
  CAPABILITIES,
  Federation,
  type FederationSettings,
  federationSettings,
} from "../../federation/index.js";
import type { FederationDoor } from "./door.js";
import { interswarmRoutes } from "./routes/interswarm.js";
import { knownSwarmRoutes } from "./routes/known-swarms.js";
import { swarmRoutes } from "./routes/swarms.js";
import { registryOf } from "./swarm-listing.js";

export const federation = defineExtension({
  name: "federation",
  settings: federationSettings,
  async create(context) {
    const { server, clock } = context;
    const opened = context.settings.enabled ? await openFederation(context) : undefined;
    const routes: NonNullable<Extension["routes"]>[number][] = [];
    let start = () => {};
    return {
      routes,
      attach({ mailroom, runtime, bus }) {
        routes.push(...(federationRoutes({ mailroom, server, clock }, opened).routes ?? []));
        start = () => opened?.start(runtime, bus);
      },
      ...(opened !== undefined && {
        carrier: opened.carrier,
        outbox: opened.outbox,
        systemActions: opened.systemActions,
        capabilities: CAPABILITIES,
        ...(opened.publicKey !== undefined && { info: { public_key: opened.publicKey } }),
        start: () => start(),
        drain: () => opened.stop(),
        close: () => opened.close(),
      }),
    };
  },
});

function openFederation(context: CreateContext<FederationSettings>): Promise<Federation> {
  const { settings, server, swarm, dataDirectory, store, clock, ids, report, env, names } = context;
  return Federation.open({
    store,
    clock,
    ids,
    swarm,
    report,
    env,
    settings,
    isNameTaken: (name) => names.isTaken(name),
    // Without a data directory there is no key, and messages are not signed.
    ...(dataDirectory !== undefined && { keyFile: join(dataDirectory, "federation.key") }),
    ...(settings.registryFile !== undefined && { registryFile: settings.registryFile }),
    ...(server.publicUrl !== undefined && { publicUrl: server.publicUrl }),
    ...(settings.ca !== undefined && { tls: { extraCaFile: settings.ca } }),
  });
}

/** Without a federation only the local swarm is listed, and none can be registered. */
export function federationRoutes(
  parts: Omit<FederationDoor, "registry">,
  federation: Federation | undefined,
): Extension {
  if (federation === undefined) return { routes: swarmRoutes({ ...parts, registry: undefined }) };
  const door = { ...parts, registry: registryOf(federation), federation };
  return {
    routes: [...swarmRoutes(door), ...knownSwarmRoutes(door), ...interswarmRoutes(door)],
    capabilities: CAPABILITIES,
    ...(federation.publicKey !== undefined && { info: { public_key: federation.publicKey } }),
  };
}
