/** `GET` and `POST /swarms`. What admins do with known swarms is in `known-swarms.ts`. */
import { MailroomError } from "../../../base/index.js";
import {
  definePublicRoute,
  defineRoute,
  MAIL_ADMINS,
  NO_INPUT,
  OPTIONAL,
  type Remember,
  type Route,
  type RouteRequest,
  SwarmReceipt,
} from "../../../extension/index.js";
import { PROTOCOL_VERSION } from "../../../mail/index.js";
import type { FederationDoor } from "../door.js";
import { RegisterRequest, SwarmList } from "../schemas.js";
import type { SwarmListing } from "../swarm-listing.js";

export function swarmRoutes(door: FederationDoor): Route[] {
  return [
    listSwarms(door),
    registerSwarm(door, "/swarms", "registerSwarm"),
    registerSwarm(door, "/swarms/register", "registerSwarmByPath"),
  ];
}

function listSwarms(door: FederationDoor): Route {
  return definePublicRoute({
    ...NO_INPUT,
    id: "listSwarms",
    method: "GET",
    path: "/swarms",
    tag: "swarms",
    summary: "List registered swarms",
    description:
      "Without a token only public swarms are listed. Users and admins see all, admins also the variable of each token. Never a " +
      "credential.",
    access: OPTIONAL,
    answers: { 200: { description: "The swarms.", schema: SwarmList } },
    async handle({ request }, caller) {
      const role = caller?.principal.role;
      const scope = role === "admin" ? "admin" : role === "user" ? "all" : "public";
      const { swarm } = door.mailroom;
      const own = scope !== "public" || swarm.public ? [ownListing(door, request)] : [];
      const others = (await door.registry?.list(scope)) ?? [];
      const swarms = [...own, ...others.filter(({ swarm_name }) => swarm_name !== swarm.name)];
      return {
        status: 200,
        // Older and newer peers read the name under different keys (REF-17).
        body: { swarms: swarms.map((listing) => ({ ...listing, name: listing.swarm_name })) },
      };
    },
  });
}

/**
 * Clients of the reference require a URL. Without a public one it is the one that the client used, never one guessed
 * from the bind address (decision D10).
 */
function ownListing(door: FederationDoor, { host, secure }: RouteRequest): SwarmListing {
  const { name, description, keywords } = door.mailroom.swarm;
  const used = host === "" ? null : `${secure ? "https" : "http"}://${host}`;
  return {
    swarm_name: name,
    base_url: door.server.publicUrl ?? used,
    version: PROTOCOL_VERSION,
    last_seen: new Date(door.clock.now()).toISOString(),
    is_active: true,
    latency: null,
    swarm_description: description,
    keywords,
    metadata: null,
  };
}

/** Both registration paths do the same (REF-19). */
function registerSwarm(door: FederationDoor, path: string, id: string): Route {
  return defineRoute({
    ...NO_INPUT,
    id,
    method: "POST",
    path,
    tag: "swarms",
    summary: "Register another swarm",
    access: MAIL_ADMINS,
    body: RegisterRequest,
    idempotent: true,
    answers: { 200: { description: "The swarm is registered.", schema: SwarmReceipt } },
    errors: ["no_registry"],
    async handle(call, caller) {
      const { body, request } = call;
      const name = body.name ?? body.swarm_name;
      if (name === undefined || body.base_url === undefined) {
        throw new MailroomError("bad_request", "name and base_url are required", {
          details: { field: name === undefined ? "name" : "base_url" },
        });
      }
      const { registry } = door;
      if (registry === undefined) {
        throw new MailroomError(
          "no_registry",
          "this server keeps no registry of other swarms: nothing was registered",
        );
      }
      const swarm = {
        name,
        baseUrl: body.base_url,
        volatile: body.volatile ?? true,
        ...(body.auth_token !== undefined && { authToken: body.auth_token }),
        ...(body.metadata !== undefined && { metadata: body.metadata }),
      };
      const write = async (remember: Remember) => {
        const answer = { status: 200, body: { status: "registered", swarm_name: name } } as const;
        await registry.register(swarm, remember({ kind: "answer", ...answer }));
        return answer;
      };
      return request.once(caller, write, { route: "registerSwarm" });
    },
  });
}
