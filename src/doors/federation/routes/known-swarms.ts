/** What admins do with the swarms that this server knows, and with those that discovery proposes. */
import { ADMINS, defineRoute, NO_INPUT, type Route, SwarmReceipt } from "../../../extension/index.js";
import type { ActiveFederationDoor } from "../door.js";
import { AcceptRequest, SwarmPath, SwarmPing, SwarmProposals } from "../schemas.js";

export function knownSwarmRoutes({ federation, mailroom }: ActiveFederationDoor): Route[] {
  const { registry } = federation;
  return [
    defineRoute({
      ...NO_INPUT,
      id: "unregisterSwarm",
      method: "DELETE",
      path: "/swarms/{name}",
      tag: "swarms",
      summary: "Unregister another swarm",
      description: "Nothing is sent to it from now on. Senders of mail that is still waiting get a notice.",
      access: ADMINS,
      params: SwarmPath,
      idempotent: true,
      answers: { 200: { description: "The swarm is no longer registered.", schema: SwarmReceipt } },
      errors: ["unknown_swarm"],
      handle({ request, params }, caller) {
        return request.once(caller, async (remember) => {
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
      ...NO_INPUT,
      id: "pingSwarm",
      method: "POST",
      path: "/swarms/{name}/ping",
      tag: "swarms",
      summary: "Check the health of another swarm",
      description: "Runs one health check now. A successful one makes an inactive swarm active.",
      access: ADMINS,
      params: SwarmPath,
      idempotent: true,
      answers: { 200: { description: "The result, also of a failed check.", schema: SwarmPing } },
      errors: ["unknown_swarm"],
      handle({ request, params }, caller) {
        return request.once(caller, async (remember) => {
          const found = await federation.ping(params.name);
          const body = {
            swarm_name: params.name,
            ok: found.ok,
            latency: found.ok ? found.latency : null,
            status: found.ok ? found.status : null,
            reason: found.ok ? null : found.reason,
          };
          const rows = remember({ kind: "answer", status: 200, body });
          if (rows.length > 0) await mailroom.store.commit({ appends: [], rows });
          return { status: 200, body };
        });
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "listSwarmProposals",
      method: "GET",
      path: "/swarms/proposals",
      tag: "swarms",
      summary: "List swarms that discovery found",
      description: "No mail is sent to them until an admin accepts them.",
      access: ADMINS,
      answers: { 200: { description: "Proposals without a decision.", schema: SwarmProposals } },
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
      ...NO_INPUT,
      id: "acceptSwarmProposal",
      method: "POST",
      path: "/swarms/proposals/{name}/accept",
      tag: "swarms",
      summary: "Register a proposed swarm",
      access: ADMINS,
      params: SwarmPath,
      body: AcceptRequest,
      bodyOptional: true,
      idempotent: true,
      answers: { 200: { description: "The swarm is registered.", schema: SwarmReceipt } },
      errors: ["unknown_proposal", "bad_swarm_name", "bad_swarm_url", "name_differs"],
      handle({ params, body, request }, caller) {
        return request.once(caller, async (remember) => {
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
      ...NO_INPUT,
      id: "rejectSwarmProposal",
      method: "DELETE",
      path: "/swarms/proposals/{name}",
      tag: "swarms",
      summary: "Discard a proposed swarm",
      description: "The swarm may be proposed again.",
      access: ADMINS,
      params: SwarmPath,
      idempotent: true,
      answers: { 200: { description: "The proposal is removed.", schema: SwarmReceipt } },
      errors: ["unknown_proposal"],
      handle({ request, params }, caller) {
        return request.once(caller, async (remember) => {
          const answer = { status: 200, body: { status: "rejected", swarm_name: params.name } } as const;
          await registry.reject(params.name, remember({ kind: "answer", ...answer }));
          request.log.info({ admin: caller.principal.id, swarm: params.name }, "a proposal was rejected");
          return answer;
        });
      },
    }),
  ];
}
