/** A listener with MAIL's routes for a test's mailroom, without the rest of a server. */
import type { Tokens } from "../../src/auth/index.js";
import { systemClock } from "../../src/base/index.js";
import { federationRoutes } from "../../src/doors/federation/extension.js";
import { swarmRoutes } from "../../src/doors/federation/routes/swarms.js";
import type { SwarmRegistry } from "../../src/doors/federation/swarm-listing.js";
import { mailRoutes } from "../../src/doors/mail/extension.js";
import type { MapServer } from "../../src/doors/map/index.js";
import { mapUpgrade } from "../../src/doors/map/upgrade.js";
import {
  type Extension,
  type Mount,
  type Page,
  type RawRoute,
  type ServerFacts,
  ServerState,
} from "../../src/extension/index.js";
import type { Federation } from "../../src/federation/index.js";
import { createHttpListener, type HttpListener, type ListenerOptions } from "../../src/http/index.js";
import { DefinitionInForce } from "../../src/library/definition.js";
import type { FullStore } from "../../src/store/index.js";
import type { LoadOptions } from "../../src/swarm/load.js";

export interface TestListenerOptions
  extends Omit<ListenerOptions, "server" | "state" | "extensions">,
    Partial<Pick<ServerFacts, "dev" | "strictIds" | "adminsActForOwners">> {
  readonly publicUrl?: string;
  readonly version?: string;
  /** Seconds. */
  readonly defaultTimeout?: number;
  readonly loading?: LoadOptions;
  readonly federation?: Federation;
  readonly registry?: SwarmRegistry;
  readonly map?: MapServer;
  readonly rawRoutes?: readonly RawRoute[];
  readonly tokens?: Tokens;
  readonly pages?: readonly Page[];
  readonly mounts?: readonly (Mount & { close?(): Promise<void> })[];
}

export interface TestListener extends HttpListener {
  readonly definition: DefinitionInForce;
}

export async function createListener(options: TestListenerOptions): Promise<TestListener> {
  const {
    mailroom,
    clock = systemClock,
    federation,
    registry,
    map,
    mounts = [],
    rawRoutes = [],
    pages = [],
    ...rest
  } = options;
  const server: ServerFacts = {
    version: options.version ?? "0.0.0",
    dev: options.dev === true,
    publicUrl: options.publicUrl,
    tls: options.tls !== undefined,
    strictIds: options.strictIds === true,
    adminsActForOwners: options.adminsActForOwners === true,
    waitTimeout: (options.defaultTimeout ?? 3600) * 1000,
  };
  const definition = new DefinitionInForce({
    mailroom,
    store: fullStore(mailroom.store).http,
    loading: options.loading,
    report: () => {},
  });
  await definition.restore();
  const extensions: { readonly name: string; readonly extension: Extension }[] = [];
  const state = new ServerState(clock, () => extensions);
  const upgrade = map === undefined ? undefined : mapUpgrade(map);
  const parts: Readonly<Record<string, Extension>> = {
    mail: mailRoutes({
      mailroom,
      definition,
      server,
      state,
      clock,
      store: fullStore(mailroom.store),
      tokens: options.tokens,
      secret: () => new Uint8Array(32),
      report: () => {},
    }),
    federation:
      registry === undefined
        ? federationRoutes({ mailroom, server, clock }, federation)
        : { routes: swarmRoutes({ mailroom, server, clock, registry }) },
    others: { routes: rawRoutes, mounts, pages, ...(upgrade !== undefined && { upgrades: [upgrade] }) },
  };
  for (const [name, extension] of Object.entries(parts)) extensions.push({ name, extension });
  const listener = await createHttpListener({
    ...rest,
    mailroom,
    clock,
    server,
    state,
    extensions: Object.values(parts),
  });
  return {
    ...listener,
    definition,
    async close() {
      listener.stopAccepting();
      await Promise.all(mounts.map((mount) => mount.close?.()));
      upgrade?.close();
      await listener.close();
      await parts.mail?.close?.();
    },
  };
}

function fullStore(store: object): FullStore {
  if ("http" in store) return store as FullStore;
  throw new Error("this test's store has no tables for HTTP");
}
