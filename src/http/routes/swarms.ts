/** This swarm, and making others known. What admins do with those is in `known-swarms.ts`. */
import { PROTOCOL_VERSION } from "../../mail/message.js";
import type { Door } from "../door.js";
import { HttpError } from "../errors.js";
import type { SwarmListing } from "../registry.js";
import { ADMINS, definePublicRoute, defineRoute, NOTHING, OPTIONAL, type Route } from "../route.js";
import { LoadRequest, RegisterRequest, SwarmDump, SwarmList, SwarmReceipt } from "../schemas/server.js";
import { swarmData } from "../swarm-data.js";
import { replaceSwarm } from "../swarm-loading.js";

export function swarmRoutes(door: Door): Route[] {
  return [
    listSwarms(door),
    registerSwarm(door, "/swarms", "registerSwarm"),
    registerSwarm(door, "/swarms/register", "registerSwarmByPath"),
    defineRoute({
      ...NOTHING,
      id: "dumpSwarm",
      method: "GET",
      path: "/swarms/dump",
      tag: "swarms",
      summary: "The swarm's definition in force",
      access: ADMINS,
      answers: { 200: { description: "The definition as data.", schema: SwarmDump } },
      async handle({ request }) {
        const { swarm } = door.mailroom;
        request.log.info({ swarm: swarm.name, agents: swarm.agents.map(({ name }) => name) }, "swarm dumped");
        return {
          status: 200,
          body: { status: "dumped", swarm_name: swarm.name, swarm: swarmData(swarm) },
        };
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "loadSwarm",
      method: "POST",
      path: "/swarms/load",
      tag: "swarms",
      summary: "Replace the swarm's definition",
      description:
        "The new one has the same name and is checked first. It is kept and survives restarts until the configured " +
        "definition changes. Running tasks go on with it.",
      access: ADMINS,
      body: LoadRequest,
      idempotent: true,
      answers: { 200: { description: "It is in force.", schema: SwarmReceipt } },
      errors: ["bad_swarm_file", "swarm_name_differs"],
      handle: (call, caller) =>
        door.writes.answer({ ...call, caller, route: "loadSwarm" }, async (remember) => {
          const answer = {
            status: 200,
            body: { status: "success", swarm_name: door.mailroom.swarm.name },
          } as const;
          await replaceSwarm(door, call.body.json, remember({ kind: "answer", ...answer }));
          call.request.log.info({ admin: caller.principal.id }, "the swarm was replaced over HTTP");
          return answer;
        }),
    }),
  ];
}

function listSwarms(door: Door): Route {
  return definePublicRoute({
    ...NOTHING,
    id: "listSwarms",
    method: "GET",
    path: "/swarms",
    tag: "swarms",
    summary: "Swarms that this server knows",
    description:
      "Anybody sees public ones; users and admins see all, admins also where each token is looked up. Never a " +
      "credential.",
    access: OPTIONAL,
    answers: { 200: { description: "The swarms.", schema: SwarmList } },
    async handle(_call, caller) {
      const role = caller?.principal.role;
      const scope = role === "admin" ? "admin" : role === "user" ? "all" : "public";
      const { swarm } = door.mailroom;
      const own = scope !== "public" || swarm.public ? [ownListing(door)] : [];
      const others = (await door.registry?.list(scope)) ?? [];
      const swarms = [...own, ...others.filter(({ swarm_name }) => swarm_name !== swarm.name)];
      return {
        status: 200,
        // Peers of both generations look for the name under different keys (mail.md, appendix A).
        body: { swarms: swarms.map((listing) => ({ ...listing, name: listing.swarm_name })) },
      };
    },
  });
}

function ownListing(door: Door): SwarmListing {
  const { name, description, keywords } = door.mailroom.swarm;
  return {
    swarm_name: name,
    base_url: door.options.publicUrl ?? null,
    version: PROTOCOL_VERSION,
    last_seen: new Date(door.clock.now()).toISOString(),
    is_active: true,
    latency: null,
    swarm_description: description,
    keywords,
    metadata: null,
  };
}

/** Both paths do the same (mail.md 14, no. 5). */
function registerSwarm(door: Door, path: string, id: string): Route {
  return defineRoute({
    ...NOTHING,
    id,
    method: "POST",
    path,
    tag: "swarms",
    summary: "Make another swarm known",
    access: ADMINS,
    body: RegisterRequest,
    idempotent: true,
    answers: { 200: { description: "It is known.", schema: SwarmReceipt } },
    errors: ["no_registry"],
    async handle(call, caller) {
      const { body } = call;
      const name = body.name ?? body.swarm_name;
      if (name === undefined || body.base_url === undefined) {
        throw new HttpError("bad_request", "name and base_url are required", {
          details: { field: name === undefined ? "name" : "base_url" },
        });
      }
      const { registry } = door;
      if (registry === undefined) {
        throw new HttpError(
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
      return door.writes.answer({ ...call, caller, route: "registerSwarm" }, async (remember) => {
        const answer = { status: 200, body: { status: "registered", swarm_name: name } } as const;
        await registry.register(swarm, remember({ kind: "answer", ...answer }));
        return answer;
      });
    },
  });
}
