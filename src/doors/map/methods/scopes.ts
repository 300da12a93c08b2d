/** `map/scopes/*`: named groups of agents. */
import { z } from "zod";
import { assertBoundedSize, MapError, parseParams } from "../../../conversations/index.js";
import { type Agent, type Scope, scopeView } from "../connected-agents.js";
import type { MapContext } from "../context.js";
import { makeRoom } from "../make-room.js";
import { listing, type MethodTable, withSession } from "../method-call.js";
import { pageOf } from "../paging.js";
import { partyOf, type Session } from "../session.js";

const id = z.string().min(1).max(256);

const createParams = z.looseObject({
  scopeId: id.optional(),
  name: z.string().max(256).optional(),
  parent: id.optional(),
});
const scopeParams = z.object({ scopeId: id });
const memberParams = z.object({ scopeId: id, agentId: id });
const pageParams = z.object({
  // The protocol has no filter here. Ignoring one would widen the list to everything.
  filter: z.strictObject({}).optional(),
  parent: id.optional(),
  limit: z.int().min(1).optional(),
  cursor: z.string().optional(),
});

export const scopeMethods: MethodTable = {
  "map/scopes/create": withSession(({ context, session, params }) => {
    const { scopeId, name, parent, ...extras } = parseParams(createParams, params);
    const { agents } = context;
    assertCanCreate(context, session, extras);
    makeRoom(context, session, [scopeId, name, extras]);
    const wanted = scopeId ?? context.ids.ordered();
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
      createdAt: context.clock.now(),
      members: new Set(),
      ...(name !== undefined && { name }),
      ...(parent !== undefined && { parent }),
    };
    agents.addScope(scope);
    context.lifecycle.scopeEvent("scope_created", scope, session.acting);
    return { scope: scopeView(scope) };
  }),

  "map/scopes/delete": withSession(({ context, session, params }) => {
    const scope = context.agents.requireScope(session.space, parseParams(scopeParams, params).scopeId);
    if (!session.owns(scope.owner) && session.principal?.role !== "admin") {
      throw new MapError("PERMISSION_DENIED", `the scope ${scope.id} belongs to another caller`);
    }
    context.agents.removeScope(scope);
    context.lifecycle.scopeEvent("scope_deleted", scope, session.acting);
    return { scope: scopeView(scope), deleted: true };
  }),

  "map/scopes/get": withSession(({ context, session, params }) => ({
    scope: scopeView(context.agents.requireScope(session.space, parseParams(scopeParams, params).scopeId)),
  })),

  "map/scopes/list": listing(
    withSession(({ context, session, params }) => {
      const { parent, ...asked } = parseParams(pageParams, params);
      const scopes = [...context.agents.scopesIn(session.space)].filter(
        (scope) => parent === undefined || scope.parent === parent,
      );
      const { views, rest } = pageOf(scopes, ({ id: scopeId }) => scopeId, scopeView, asked);
      return { scopes: views, ...rest };
    }),
  ),

  "map/scopes/join": withSession(({ context, session, params }) => {
    const { scope, agent } = own(context, session, parseParams(memberParams, params));
    context.agents.enter(scope, agent);
    context.lifecycle.scopeEvent("scope_member_joined", scope, agent.id, { agentId: agent.id });
    return { scope: scopeView(scope), agent: context.agents.agentView(agent), joined: true };
  }),

  "map/scopes/leave": withSession(({ context, session, params }) => {
    const { scope, agent } = own(context, session, parseParams(memberParams, params));
    context.agents.exit(scope, agent);
    context.lifecycle.scopeEvent("scope_member_left", scope, agent.id, { agentId: agent.id });
    return { scope: scopeView(scope), agent: context.agents.agentView(agent), left: true };
  }),

  "map/scopes/members": listing(
    withSession(({ context, session, params }) => {
      const { scopeId, ...asked } = parseParams(pageParams.extend({ scopeId: id }), params);
      const { members } = context.agents.requireScope(session.space, scopeId);
      const same = (member: string): string => member;
      const { views, rest } = pageOf(members, same, same, asked);
      return { members: views, ...rest };
    }),
  ),
};

/** @throws MapError PERMISSION_DENIED, QUOTA_EXCEEDED, INVALID_PARAMS */
function assertCanCreate(
  { agents, limits }: MapContext,
  session: Session,
  extras: Readonly<Record<string, unknown>>,
): void {
  // A member token serves its agent and nothing else (decision A5).
  if (session.principal?.role === "member") {
    throw new MapError("PERMISSION_DENIED", "a member token cannot create scopes");
  }
  if (agents.scopeCount >= limits.maxScopes) {
    throw new MapError("QUOTA_EXCEEDED", "too many scopes");
  }
  const own = [...agents.scopesIn(session.space)].filter(
    (scope) => partyOf(scope.session) === partyOf(session),
  );
  if (own.length >= limits.maxScopesEach) {
    throw new MapError("QUOTA_EXCEEDED", `one participant can have ${limits.maxScopesEach} scopes`);
  }
  assertBoundedSize("scope", extras);
}

function own(
  context: MapContext,
  session: Session,
  { scopeId, agentId }: { readonly scopeId: string; readonly agentId: string },
): { readonly scope: Scope; readonly agent: Agent } {
  const scope = context.agents.requireScope(session.space, scopeId);
  const agent = context.agents.require(session.space, agentId);
  if (agent.session.participantId !== session.participantId) {
    throw new MapError("PERMISSION_DENIED", `the agent ${agentId} belongs to another caller`);
  }
  return { scope, agent };
}
