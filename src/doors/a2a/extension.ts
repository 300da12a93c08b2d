/**
 * The swarm as an A2A agent at `/a2a`, and configured A2A agents as a carrier (decision H2). The SDK is large, so it is
 * loaded with the first request, or at start if there are agents to write to.
 */
import type { IncomingMessage } from "node:http";
import { MailroomError } from "../../base/index.js";
import {
  type CreateContext,
  defineExtension,
  type Mount,
  type NameTable,
  PUBLIC,
  type RawRoute,
} from "../../extension/index.js";
import type { Mailroom } from "../../library/index.js";
import { checkSwarmName } from "../../mail/index.js";
import { createFetch, createGuard, createHttpClient } from "../../net/index.js";
import type { A2aCarrier, A2aHttpDoor, A2aPeer } from "./index.js";
import { A2A_OPERATION, CARD_DESCRIPTION } from "./operations.js";
import { type A2aSettings, a2aSettings } from "./settings.js";

const A2A_PATH = "/a2a";
const VERSION_HEADER = "a2a-version";
const CARD_PATH = "/.well-known/agent-card.json";
/** Bytes of an A2A agent's response. */
const MAX_RESPONSE = 4 * 1024 * 1024;
/** Milliseconds; an A2A agent may respond only when it is done. */
const REPLY_TIMEOUT = 900_000;

const load = () => import("./index.js");

export const a2a = defineExtension({
  name: "a2a",
  settings: a2aSettings,
  async create(context) {
    const { settings, names } = context;
    for (const alias of Object.keys(settings.agents)) claimAlias(alias, names);
    const carrier = await createCarrier(context);
    const door = settings.enabled ? createDoor(context) : undefined;
    if (carrier === undefined && door === undefined) return undefined;
    let start = () => {};
    return {
      ...(carrier !== undefined && { carrier, outbox: carrier.outbox }),
      ...(door !== undefined && { mounts: [door.mount], routes: [door.card] }),
      attach({ mailroom, runtime }) {
        door?.attach(mailroom);
        start = () => carrier?.start(runtime);
      },
      start: () => start(),
      async drain() {
        await Promise.all([door?.close(), carrier?.close()]);
      },
    };
  },
});

function createDoor({ server, store, report }: CreateContext<A2aSettings>) {
  const onError = (cause: Error) => report({ code: "internal_error", message: cause.message, cause });
  let attached: Mailroom | undefined;
  let opened: Promise<A2aHttpDoor> | undefined;
  const mailroom = (): Mailroom => {
    if (attached === undefined) throw new Error("A2A was called before the server was attached");
    return attached;
  };
  /** Configured, never guessed (decision D10). In development mode only loopback names reach this code. */
  const baseUrl = (host: string | undefined): string | undefined => {
    if (server.publicUrl !== undefined) return server.publicUrl.replace(/\/+$/, "");
    if (!server.dev || host === undefined) return undefined;
    return `${server.tls ? "https" : "http"}://${host}`;
  };
  const open = (): Promise<A2aHttpDoor> => {
    opened ??= load().then(({ createA2aHttpDoor }) =>
      createA2aHttpDoor({
        mailroom: mailroom(),
        state: store.a2a,
        url: ({ headers }: IncomingMessage) => `${baseUrl(headers.host) ?? ""}${A2A_PATH}`,
        strictIds: server.strictIds,
        adminsActForOwners: server.adminsActForOwners,
        onError,
      }),
    );
    return opened;
  };
  const mount: Mount = {
    path: A2A_PATH,
    operations: [A2A_OPERATION],
    headers: { sent: ["a2a-version", "a2a-extensions"], read: [] },
    roles: ["user", "admin"],
    handle: async (call) => (await open()).handle(call),
  };
  const card: RawRoute = {
    ...CARD_DESCRIPTION,
    method: "GET",
    path: CARD_PATH,
    access: PUBLIC,
    async handle({ headers }) {
      const url = baseUrl(headers.host);
      if (url === undefined) {
        throw new MailroomError(
          "not_found",
          "the card contains a public address: set public_url in [server]",
        );
      }
      const { cardText } = await load();
      return {
        status: 200,
        headers: {
          "content-type": "application/json",
          "cache-control": "public, max-age=300",
          vary: VERSION_HEADER,
        },
        body: cardText(mailroom().swarm, { url: `${url}${A2A_PATH}` }, headers[VERSION_HEADER]),
      };
    },
  };
  return {
    mount,
    card,
    attach: (to: Mailroom) => {
      attached = to;
    },
    close: async () => (await opened)?.close(),
  };
}

/** @throws MailroomError `bad_config`, naming the setting */
function claimAlias(alias: string, names: NameTable): void {
  const problem = checkSwarmName(alias) ?? (names.isTaken(alias) ? "this name is already in use" : undefined);
  if (problem !== undefined) throw new MailroomError("bad_config", `a2a.agents.${alias}: ${problem}`);
  names.claim(alias);
}

/** @throws MailroomError `bad_config` for a token that cannot be used */
async function createCarrier(context: CreateContext<A2aSettings>): Promise<A2aCarrier | undefined> {
  const { settings, env, store, clock, ids, report } = context;
  const agents = Object.entries(settings.agents);
  if (agents.length === 0) return undefined;
  const { A2aCarrier } = await load();
  const client = createHttpClient({
    guard: createGuard({ allow: settings.allow }),
    userAgent: "mailroom-a2a",
    clock,
  });
  return new A2aCarrier({
    agents: Object.fromEntries(agents.map(([alias, agent]) => [alias, toPeer(alias, agent, env)])),
    fetch: createFetch(client, { maxBytes: MAX_RESPONSE }),
    clock,
    ids,
    store,
    report,
    deliveryTime: settings.deliveryTimeout,
    replyTimeout: REPLY_TIMEOUT,
  });
}

function toPeer(
  alias: string,
  { url, token }: A2aSettings["agents"][string],
  env: CreateContext["env"],
): A2aPeer {
  const variable = token === undefined ? undefined : /^\$\{(\w+)\}$/.exec(token)?.[1];
  const secret = variable === undefined ? token : env[variable];
  if (variable !== undefined && (secret === undefined || secret === "")) {
    throw new MailroomError(
      "bad_config",
      `a2a.agents.${alias}.token refers to the environment variable ${variable}, which is not set`,
    );
  }
  return { url, ...(secret !== undefined && { token: secret }) };
}
