/** `map/agents/*` and `map/structure/graph` (REF-29). */
import { z } from "zod";
import { assertBoundedSize, MapError, parseParams } from "../../../conversations/index.js";
import { isServerId, problemOfId } from "../access.js";
import { addressSchema, ancestorsOf, descendantsOf } from "../addresses.js";
import { type Agent, assertAgentState, canList, storedAgent } from "../connected-agents.js";
import type { MapContext } from "../context.js";
import { makeRoom } from "../make-room.js";
import { listing, type MethodTable, type SessionCall, withSession } from "../method-call.js";
import { pageOf, Related } from "../paging.js";
import { principalKey, type Session } from "../session.js";

const id = z.string().min(1).max(256);
const record = z.record(z.string(), z.unknown());

const registerParams = z.object({
  agentId: id.optional(),
  name: z.string().max(256).optional(),
  description: z.string().max(10_000).optional(),
  role: z.string().max(256).optional(),
  parent: id.optional(),
  scopes: z.array(id).max(1000).optional(),
  visibility: z.unknown().optional(),
  capabilities: z.unknown().optional(),
  environment: z.unknown().optional(),
  capabilityDescriptor: z.unknown().optional(),
  permissionOverrides: z.unknown().optional(),
  metadata: record.optional(),
  /** Shows that the caller was given an id that was invited before it had an owner. */
  invitation: z.string().max(256).optional(),
});
type RegisterParams = z.infer<typeof registerParams>;

const EXTRAS = ["capabilities", "environment", "capabilityDescriptor", "permissionOverrides"] as const;

const texts = z.array(z.string()).optional();
const listParams = z.object({
  filter: z
    .strictObject({
      states: texts,
      roles: texts,
      scopes: texts,
      parent: z.string().optional(),
      hasChildren: z.boolean().optional(),
      ownerId: z.string().optional(),
    })
    .optional(),
  limit: z.int().min(1).optional(),
  cursor: z.string().optional(),
});

const getParams = z.object({
  agentId: id,
  include: z
    .object({
      parent: z.boolean().optional(),
      children: z.boolean().optional(),
      siblings: z.boolean().optional(),
      ancestors: z.boolean().optional(),
      descendants: z.boolean().optional(),
      maxDepth: z.int().min(1).optional(),
    })
    .optional(),
});

const updateParams = z.object({
  agentId: id,
  state: z.string().max(100).optional(),
  metadata: record.optional(),
  environment: z.unknown().optional(),
  permissionOverrides: z.unknown().optional(),
});

const named = z.object({ agentId: id });

const graphParams = z.object({
  rootAgentId: id.optional(),
  depth: z.int().min(1).max(100).optional(),
  limit: z.int().min(1).optional(),
  cursor: z.string().optional(),
});

export const agentMethods: MethodTable = {
  "map/agents/register": withSession(async (call) => {
    const agent = await register(call, parseParams(registerParams, call.params));
    const { agents, remoteAgents } = call.context;
    return {
      agent: agents.agentView(agent),
      // The connection receives the mail of this agent of the swarm.
      ...(remoteAgents?.isServedBy(agent, call.session) === true && { _meta: { remote: true } }),
    };
  }),

  "map/agents/spawn": withSession(async (call) => {
    const { context, session } = call;
    if (session.principal?.role === "member") {
      throw new MapError("PERMISSION_DENIED", `this token can only serve the agent ${session.principal.id}`);
    }
    const params = parseParams(registerParams.extend({ initialMessage: record.optional() }), call.params);
    if (params.initialMessage !== undefined) context.messages.assertCanSend(session);
    if (params.parent !== undefined) requireOwned(context, session, params.parent);
    const parent = params.parent ?? (session.agents.size > 0 ? session.acting : undefined);
    const agent = await register(call, parent === undefined ? params : { ...params, parent });
    const { initialMessage } = params;
    const sent =
      initialMessage === undefined
        ? undefined
        : await context.messages.send(session, parseParams(addressSchema, { agent: agent.id }), {
            to: { agent: agent.id },
            payload: initialMessage.payload ?? initialMessage,
          });
    return {
      agent: context.agents.agentView(agent),
      ...(sent !== undefined && { messageId: sent.messageId }),
    };
  }),

  "map/agents/unregister": withSession(async ({ context, session, params }) => {
    const agent = requireOwned(context, session, parseParams(named, params).agentId);
    const view = context.agents.agentView(agent);
    context.lifecycle.removeAgent(agent);
    await context.sessions.save(agent.session);
    return { agent: view, unregistered: true };
  }),

  "map/agents/update": withSession(async ({ context, session, params }) => {
    const { agentId, state, metadata, environment, permissionOverrides } = parseParams(updateParams, params);
    const agent = requireOwned(context, session, agentId);
    const extras = {
      ...agent.extras,
      ...(environment !== undefined && { environment }),
      ...(permissionOverrides !== undefined && { permissionOverrides }),
    };
    const merged = { ...agent.metadata, ...metadata };
    assertBoundedSize("agent", [merged, extras]);
    makeRoom(context, agent.session, { ...storedAgent(agent), metadata: merged, extras }, agent);
    if (state !== undefined) setState(context, agent, state);
    agent.metadata = merged;
    agent.extras = extras;
    context.agents.changed(agent);
    return { agent: context.agents.agentView(agent) };
  }),

  "map/agents/list": listing(
    withSession(({ context, session, params }) => {
      const { filter = {}, ...page } = parseParams(listParams, params);
      const matches = (agent: Agent): boolean =>
        canList(session, agent) &&
        oneOf(filter.states, agent.state) &&
        oneOf(filter.roles, agent.role) &&
        (isEmpty(filter.scopes) || filter.scopes?.some((scope) => agent.scopes.has(scope)) === true) &&
        (filter.parent === undefined || agent.parent === filter.parent) &&
        (filter.ownerId === undefined || agent.session.participantId === filter.ownerId) &&
        (filter.hasChildren === undefined ||
          context.agents.childrenOf(agent).length > 0 === filter.hasChildren);
      const all = [...context.agents.inSpace(session.space)].filter(matches);
      const { views, rest } = pageOf(
        all,
        ({ id: agentId }) => agentId,
        (agent) => context.agents.agentView(agent),
        page,
      );
      return { agents: views, ...rest };
    }),
  ),

  "map/agents/get": listing(
    withSession(({ context, session, params }) => {
      const { agentId, include = {} } = parseParams(getParams, params);
      const { agents } = context;
      const agent = visible(context, session, agentId);
      const { maxDepth = 100 } = include;
      const parent = agents.parentOf(agent);
      const siblings = parent === undefined ? [] : agents.childrenOf(parent).filter((one) => one !== agent);
      const related = new Related((one: Agent) => agents.agentView(one));
      const views = (name: string, some: readonly Agent[]) => ({
        [name]: related.views(
          name,
          some.filter((one) => canList(session, one)),
        ),
      });
      return {
        agent: agents.agentView(agent),
        ...(include.parent === true &&
          parent !== undefined && {
            parent: canList(session, parent) ? agents.agentView(parent) : undefined,
          }),
        ...(include.children === true && views("children", agents.childrenOf(agent))),
        ...(include.siblings === true && views("siblings", siblings)),
        ...(include.ancestors === true && views("ancestors", ancestorsOf(agent, agents, maxDepth))),
        ...(include.descendants === true && views("descendants", descendantsOf(agent, agents, maxDepth))),
        ...(related.cut.length > 0 && { _meta: { cut: related.cut } }),
      };
    }),
  ),

  "map/agents/stop": lifecycle("stopped", "stopping"),
  "map/agents/suspend": lifecycle("suspended", "suspended"),
  "map/agents/resume": lifecycle("idle", "resumed"),

  "map/structure/graph": listing(
    withSession(({ context, session, params }) => {
      const { rootAgentId, depth = 100, ...page } = parseParams(graphParams, params);
      const { agents } = context;
      const root = rootAgentId === undefined ? undefined : visible(context, session, rootAgentId);
      const listed = (
        root === undefined
          ? [...agents.inSpace(session.space)]
          : [root, ...descendantsOf(root, agents, depth)]
      ).filter((agent) => canList(session, agent));
      const shown = new Set(listed);
      const { items, views, rest } = pageOf(
        listed,
        ({ id: agentId }) => agentId,
        (agent) => agents.agentView(agent),
        page,
      );
      return {
        nodes: views,
        ...rest,
        // Also to parents on earlier pages.
        edges: items.flatMap((agent) => {
          const parent = agents.parentOf(agent);
          return parent !== undefined && shown.has(parent)
            ? [{ from: parent.id, to: agent.id, type: "parent-child" }]
            : [];
        }),
      };
    }),
  ),
};

function lifecycle(state: string, flag: string): MethodTable[string] {
  return withSession(({ context, session, params }) => {
    const agent = requireOwned(context, session, parseParams(named, params).agentId);
    setState(context, agent, state);
    return { [flag]: true, agent: context.agents.agentView(agent) };
  });
}

async function register(
  { context, session, connection }: SessionCall,
  params: RegisterParams,
): Promise<Agent> {
  assertBoundedSize("agent", [params.metadata, params.visibility, ...EXTRAS.map((field) => params[field])]);
  const wanted = wantedId(context, session, params.agentId);
  const { invitation } = params;
  const claimed = await context.sessions.claimAgent(session, wanted, {
    // Only the member token can register under a name of the swarm; an earlier owner loses the id.
    ...(context.access.isReserved(wanted) && { takesOver: true }),
    ...(params.agentId !== undefined && isServerId(wanted) && { existing: true }),
    ...(invitation !== undefined && { invitation }),
  });
  if (!claimed) throw taken(wanted);
  // If the connection closed meanwhile, only the end of the session would remove the agent.
  if (session.connection !== connection) throw new MapError("AUTH_REQUIRED", "the connection is closed");
  // No await between these checks and the registration.
  if (session.agents.size >= context.limits.maxAgents && !session.agents.has(wanted)) {
    throw new MapError("QUOTA_EXCEEDED", `a session can have ${context.limits.maxAgents} agents`);
  }
  const known = context.agents.find(session.space, wanted);
  if (known !== undefined && !canTakeOver(session, known)) throw taken(wanted);
  if (
    context.sessions.byParticipant(session.space, wanted) !== undefined &&
    session.participantId !== wanted
  ) {
    throw taken(wanted);
  }
  assertParent(context, session, params.parent);
  const extras = Object.fromEntries(
    EXTRAS.flatMap((field) => (params[field] === undefined ? [] : [[field, params[field]] as const])),
  );
  const agent: Agent = {
    id: wanted,
    space: session.space,
    session,
    state: "registered",
    visibility: typeof params.visibility === "string" ? params.visibility : "public",
    scopes: new Set(),
    extras,
    metadata: params.metadata ?? {},
    createdAt: context.clock.now(),
    ...(params.name !== undefined && { name: params.name }),
    ...(params.description !== undefined && { description: params.description }),
    ...(params.role !== undefined && { role: params.role }),
    ...(params.parent !== undefined && { parent: params.parent }),
  };
  makeRoom(context, session, storedAgent(agent), known);
  if (known !== undefined && known.session !== session) known.session.removeAgent(wanted);
  context.agents.add(agent);
  session.addAgent(wanted);
  for (const scopeId of params.scopes ?? []) {
    const scope = context.agents.findScope(session.space, scopeId);
    if (scope !== undefined) context.agents.enter(scope, agent);
  }
  await context.sessions.save(session);
  context.lifecycle.agentEvent("agent_registered", agent, { name: agent.name, role: agent.role });
  context.lifecycle.agentRegistered(agent);
  return agent;
}

/**
 * The ids of the swarm's agents are reserved for their member tokens (decision A5); participant ids cannot be agents
 * (decision F1).
 */
function wantedId(context: MapContext, session: Session, wanted: string | undefined): string {
  const { principal } = session;
  if (principal?.role === "member") {
    if (wanted !== undefined && wanted !== principal.id) {
      throw new MapError("PERMISSION_DENIED", `this token can only serve the agent ${principal.id}`);
    }
    return principal.id;
  }
  if (wanted === undefined) return context.ids.ordered();
  const problem = problemOfId(wanted);
  if (problem !== undefined) throw new MapError("INVALID_PARAMS", `agentId: ${problem}`);
  const known = context.agents.find(session.space, wanted);
  const own = known !== undefined && canTakeOver(session, known);
  // A session's id is its participant's, also after the session has ended.
  const foreign = isServerId(wanted) && principal === undefined && !own;
  if (foreign || !context.access.canUseId(principal, wanted)) {
    throw new MapError("PERMISSION_DENIED", `the id ${wanted} is reserved`, { agentId: wanted });
  }
  return wanted;
}

/** The same principal, or without authentication the id of a disconnected session. */
function canTakeOver(session: Session, { session: holder }: Agent): boolean {
  if (holder === session) return true;
  const principal = principalKey(session.principal);
  if (principal !== principalKey(holder.principal)) return false;
  return principal !== undefined || holder.connection === undefined;
}

/**
 * Messages to an agent's children are meant for them, so an agent cannot become a child of another
 * principal's agent.
 */
function assertParent(context: MapContext, session: Session, parent: string | undefined): void {
  const holder = parent === undefined ? undefined : context.agents.find(session.space, parent);
  if (holder === undefined) return;
  if (principalKey(holder.session.principal) === principalKey(session.principal)) return;
  throw new MapError("PERMISSION_DENIED", `the agent ${parent} belongs to another caller`);
}

function taken(agentId: string): MapError {
  const message = "the agent id is taken; if you were invited under it, register with the invitation";
  return new MapError("AGENT_EXISTS", message, { agentId });
}

function visible(context: MapContext, session: Session, agentId: string): Agent {
  const agent = context.agents.require(session.space, agentId);
  if (!canList(session, agent)) throw new MapError("AGENT_NOT_FOUND", undefined, { agentId });
  return agent;
}

/** @throws MapError AGENT_NOT_FOUND, PERMISSION_DENIED */
function requireOwned(context: MapContext, session: Session, agentId: string): Agent {
  const agent = visible(context, session, agentId);
  const own = agent.session === session || agent.session.participantId === session.participantId;
  if (!own && session.principal?.role !== "admin") {
    throw new MapError("PERMISSION_DENIED", `the agent ${agentId} belongs to another caller`);
  }
  return agent;
}

function setState(context: MapContext, agent: Agent, state: string): void {
  assertAgentState(state);
  const previousState = agent.state;
  agent.state = state;
  context.agents.changed(agent);
  if (state !== previousState)
    context.lifecycle.agentEvent("agent_state_changed", agent, { previousState, newState: state });
}

function isEmpty(values: readonly string[] | undefined): boolean {
  return values === undefined || values.length === 0;
}

function oneOf(values: readonly string[] | undefined, value: string | undefined): boolean {
  return isEmpty(values) || (value !== undefined && values?.includes(value) === true);
}
