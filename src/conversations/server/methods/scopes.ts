/** `map/scopes/*`: named groups of agents. */
import { z } from "zod";
import { MapError } from "../../domain/errors.js";
import { assertModest, parseParams } from "../../domain/params.js";
import { type Agent, type Scope, scopeView } from "../agents.js";
import type { MapServer } from "../map-server.js";
import type { MethodTable } from "../methods.js";
import { principalKey, type Session } from "../session.js";
import { withSession } from "./with-session.js";

const id = z.string().min(1).max(256);

const createParams = z.looseObject({
  scopeId: id.optional(),
  name: z.string().max(256).optional(),
  parent: id.optional(),
});
const scopeParams = z.object({ scopeId: id });
const memberParams = z.object({ scopeId: id, agentId: id });
const pageParams = z.object({
  parent: id.optional(),
  limit: z.int().min(1).optional(),
  cursor: z.string().optional(),
});

export const scopeMethods: MethodTable = {
  "map/scopes/create": withSession(({ server, session, params }) => {
    const { scopeId, name, parent, ...extras } = parseParams(createParams, params);
    const { agents } = server;
    assertMayCreate(server, session, extras);
    const wanted = scopeId ?? server.ids.ordered();
    if (agents.findScope(session.space, wanted) !== undefined) {
      throw new MapError("INVALID_PARAMS", `scopeId: ${wanted} is taken`);
    }
    if (parent !== undefined) agents.requireScope(session.space, parent);
    const scope: Scope = {
      id: wanted,
      space: session.space,
      owner: session.acting,
      session,
      extras,
      createdAt: server.clock.now(),
      members: new Set(),
      ...(name !== undefined && { name }),
      ...(parent !== undefined && { parent }),
    };
    agents.addScope(scope);
    server.scopeEvent("scope_created", scope, session.acting);
    return { scope: scopeView(scope) };
  }),

  "map/scopes/delete": withSession(({ server, session, params }) => {
    const scope = server.agents.requireScope(session.space, parseParams(scopeParams, params).scopeId);
    if (!session.owns(scope.owner) && session.principal?.role !== "admin") {
      throw new MapError("PERMISSION_DENIED", `the scope ${scope.id} is somebody else's`);
    }
    server.agents.removeScope(scope);
    server.scopeEvent("scope_deleted", scope, session.acting);
    return { scope: scopeView(scope), deleted: true };
  }),

  "map/scopes/get": withSession(({ server, session, params }) => ({
    scope: scopeView(server.agents.requireScope(session.space, parseParams(scopeParams, params).scopeId)),
  })),

  "map/scopes/list": withSession(({ server, session, params }) => {
    const { parent, limit = 500, cursor } = parseParams(pageParams, params);
    const scopes = [...server.agents.scopesIn(session.space)].filter(
      (scope) => parent === undefined || scope.parent === parent,
    );
    const page = pageOf(scopes, ({ id: scopeId }) => scopeId, limit, cursor);
    return { scopes: page.items.map(scopeView), ...page.rest };
  }),

  "map/scopes/join": withSession(({ server, session, params }) => {
    const { scope, agent } = own(server, session, parseParams(memberParams, params));
    server.agents.enter(scope, agent);
    server.scopeEvent("scope_member_joined", scope, agent.id, { agentId: agent.id });
    return { scope: scopeView(scope), agent: server.agents.agentView(agent), joined: true };
  }),

  "map/scopes/leave": withSession(({ server, session, params }) => {
    const { scope, agent } = own(server, session, parseParams(memberParams, params));
    server.agents.exit(scope, agent);
    server.scopeEvent("scope_member_left", scope, agent.id, { agentId: agent.id });
    return { scope: scopeView(scope), agent: server.agents.agentView(agent), left: true };
  }),

  "map/scopes/members": withSession(({ server, session, params }) => {
    const { scopeId, limit = 500, cursor } = parseParams(pageParams.extend({ scopeId: id }), params);
    const members = [...server.agents.requireScope(session.space, scopeId).members];
    const page = pageOf(members, (member) => member, limit, cursor);
    return { members: page.items, ...page.rest };
  }),
};

/** @throws MapError PERMISSION_DENIED, QUOTA_EXCEEDED, INVALID_PARAMS */
function assertMayCreate(
  { agents, limits }: MapServer,
  session: Session,
  extras: Readonly<Record<string, unknown>>,
): void {
  // Decisions A5: a member serves its agent and nothing else.
  if (session.principal?.role === "member") {
    throw new MapError("PERMISSION_DENIED", "a token that serves an agent of the swarm makes no scopes");
  }
  if (agents.scopeCount >= limits.maxScopes) {
    throw new MapError("QUOTA_EXCEEDED", "there are too many scopes");
  }
  const own = [...agents.scopesIn(session.space)].filter(
    (scope) => partyOf(scope.session) === partyOf(session),
  );
  if (own.length >= limits.maxScopesEach) {
    throw new MapError("QUOTA_EXCEEDED", `one participant can have ${limits.maxScopesEach} scopes`);
  }
  assertModest("scope", extras);
}

function partyOf(session: Session): string {
  return principalKey(session.principal) ?? session.id;
}

function own(
  server: MapServer,
  session: Session,
  { scopeId, agentId }: { readonly scopeId: string; readonly agentId: string },
): { readonly scope: Scope; readonly agent: Agent } {
  const scope = server.agents.requireScope(session.space, scopeId);
  const agent = server.agents.require(session.space, agentId);
  if (agent.session.participantId !== session.participantId) {
    throw new MapError("PERMISSION_DENIED", `the agent ${agentId} is somebody else's`);
  }
  return { scope, agent };
}

function pageOf<Item>(
  items: readonly Item[],
  idOf: (item: Item) => string,
  limit: number,
  cursor: string | undefined,
): { readonly items: readonly Item[]; readonly rest: { readonly nextCursor?: string } } {
  const start = cursor === undefined ? 0 : items.findIndex((item) => idOf(item) === cursor) + 1;
  if (cursor !== undefined && start === 0) throw new MapError("INVALID_PARAMS", "cursor: unknown");
  const page = items.slice(start, start + limit);
  const last = page.at(-1);
  return {
    items: page,
    rest: start + limit < items.length && last !== undefined ? { nextCursor: idOf(last) } : {},
  };
}
