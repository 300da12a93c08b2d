/** What admins do with the swarms that this server knows, and with those that discovery proposes. Routes of our own. */
import type { Door } from "../door.js";
import { defineRoute, NOTHING, OUR_ADMINS, type Route } from "../route.js";
import { AcceptRequest, SwarmPath, SwarmPing, SwarmProposals, SwarmReceipt } from "../schemas/server.js";

export function knownSwarmRoutes(door: Door): Route[] {
  const { federation } = door.options;
  if (federation === undefined) return [];
  const { registry } = federation;
  return [
    defineRoute({
      ...NOTHING,
      id: "unregisterSwarm",
      method: "DELETE",
      path: "/swarms/{name}",
      tag: "swarms",
      summary: "Forget another swarm",
      description: "Nothing is sent to it any more: whoever still has mail on the way there is told.",
      access: OUR_ADMINS,
      params: SwarmPath,
      idempotent: true,
      answers: { 200: { description: "It is not known any more.", schema: SwarmReceipt } },
      errors: ["unknown_swarm"],
      handle({ request, params }, caller) {
        const write = { request, caller, route: "unregisterSwarm", params, body: undefined };
        return door.writes.answer(write, async (remember) => {
          const answer = {
            status: 200,
            body: { status: "unregistered", swarm_name: params.name },
          } as const;
          await registry.unregister(params.name, remember({ kind: "answer", ...answer }));
          request.log.info({ admin: caller.principal.id, swarm: params.name }, "a swarm was unregistered");
          return answer;
        });
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "pingSwarm",
      method: "POST",
      path: "/swarms/{name}/ping",
      tag: "swarms",
      summary: "Ask another swarm whether it is well",
      description: "One health check, now. A good answer makes an inactive swarm active at once.",
      access: OUR_ADMINS,
      params: SwarmPath,
      idempotent: true,
      answers: { 200: { description: "What came of it, also if nothing did.", schema: SwarmPing } },
      errors: ["unknown_swarm"],
      handle({ request, params }, caller) {
        const write = { request, caller, route: "pingSwarm", params, body: undefined };
        return door.writes.answer(write, async (remember) => {
          const found = await federation.ping(params.name);
          const body = {
            swarm_name: params.name,
            ok: found.ok,
            latency: found.ok ? found.latency : null,
            status: found.ok ? found.status : null,
            reason: found.ok ? null : found.reason,
          };
          const rows = remember({ kind: "answer", status: 200, body });
          if (rows.length > 0) await door.kept.store.commit({ appends: [], rows });
          return { status: 200, body };
        });
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "listSwarmProposals",
      method: "GET",
      path: "/swarms/proposals",
      tag: "swarms",
      summary: "Swarms that discovery found",
      description: "They lead nowhere until an admin accepts them.",
      access: OUR_ADMINS,
      answers: { 200: { description: "What nobody has decided about.", schema: SwarmProposals } },
      async handle() {
        const proposals = await registry.proposals();
        return {
          status: 200,
          body: {
            proposals: proposals.map(({ name, baseUrl, source, proposedAt }) => ({
              swarm_name: name,
              base_url: baseUrl,
              source,
              proposed_at: new Date(proposedAt).toISOString(),
            })),
          },
        };
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "acceptSwarmProposal",
      method: "POST",
      path: "/swarms/proposals/{name}/accept",
      tag: "swarms",
      summary: "Register a swarm that was proposed",
      access: OUR_ADMINS,
      params: SwarmPath,
      body: AcceptRequest,
      bodyOptional: true,
      idempotent: true,
      answers: { 200: { description: "It is known.", schema: SwarmReceipt } },
      errors: ["unknown_proposal", "bad_swarm_name", "bad_swarm_url", "name_differs"],
      handle(call, caller) {
        const { params, body, request } = call;
        return door.writes.answer({ ...call, caller, route: "acceptSwarmProposal" }, async (remember) => {
          const answer = { status: 200, body: { status: "registered", swarm_name: params.name } } as const;
          const terms = {
            volatile: body.volatile ?? false,
            ...(body.auth_token !== undefined && { authToken: body.auth_token }),
          };
          await registry.accept(params.name, terms, remember({ kind: "answer", ...answer }));
          request.log.info({ admin: caller.principal.id, swarm: params.name }, "a proposal was accepted");
          return answer;
        });
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "rejectSwarmProposal",
      method: "DELETE",
      path: "/swarms/proposals/{name}",
      tag: "swarms",
      summary: "Drop a swarm that was proposed",
      description: "It may be proposed again.",
      access: OUR_ADMINS,
      params: SwarmPath,
      idempotent: true,
      answers: { 200: { description: "It is not proposed any more.", schema: SwarmReceipt } },
      errors: ["unknown_proposal"],
      handle({ request, params }, caller) {
        const write = { request, caller, route: "rejectSwarmProposal", params, body: undefined };
        return door.writes.answer(write, async (remember) => {
          const answer = { status: 200, body: { status: "rejected", swarm_name: params.name } } as const;
          await registry.reject(params.name, remember({ kind: "answer", ...answer }));
          request.log.info({ admin: caller.principal.id, swarm: params.name }, "a proposal was rejected");
          return answer;
        });
      },
    }),
  ];
}
