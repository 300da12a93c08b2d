/** `map/agents/*` and `map/structure/graph` (map-mail 2.2). */
import { z } from "zod";
import { RowConflictError } from "../../../engine/ports.js";
import { MapError } from "../../domain/errors.js";
import { assertModest, parseParams } from "../../domain/params.js";
import type { AgentClaim } from "../../ports.js";
import { addressSchema, ancestorsOf, descendantsOf } from "../addresses.js";
import { type Agent, assertAgentState, mayList } from "../agents.js";
import type { MapServer } from "../map-server.js";
import type { MethodTable, SessionCall } from "../methods.js";
import { principalKey, type Session } from "../session.js";
import { withSession } from "./with-session.js";

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
});
type RegisterParams = z.infer<typeof registerParams>;

const EXTRAS = ["capabilities", "environment", "capabilityDescriptor", "permissionOverrides"] as const;

const texts = z.array(z.string()).optional();
const listParams = z.object({
  filter: z
    .object({
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

export const agentMethods: MethodTable = {
  "map/agents/register": withSession(async (call) => {
    const agent = await register(call, parseParams(registerParams, call.params));
    return { agent: call.server.agents.agentView(agent) };
  }),

  "map/agents/spawn": withSession(async (call) => {
    const { server, session } = call;
    const params = parseParams(registerParams.extend({ initialMessage: record.optional() }), call.params);
    if (params.initialMessage !== undefined) server.messages.assertMaySend(session);
    if (params.parent !== undefined) requireOwned(server, session, params.parent);
    const parent = params.parent ?? (session.agents.size > 0 ? session.acting : undefined);
    const agent = await register(call, parent === undefined ? params : { ...params, parent });
    const { initialMessage } = params;
    const sent =
      initialMessage === undefined
        ? undefined
        : await server.messages.send(session, parseParams(addressSchema, { agent: agent.id }), {
            to: { agent: agent.id },
            payload: initialMessage.payload ?? initialMessage,
          });
    return {
      agent: server.agents.agentView(agent),
      ...(sent !== undefined && { messageId: sent.messageId }),
    };
  }),

  "map/agents/unregister": withSession(async ({ server, session, params }) => {
    const agent = requireOwned(server, session, parseParams(named, params).agentId);
    const view = server.agents.agentView(agent);
    server.removeAgent(agent);
    await server.sessions.save(agent.session);
    return { agent: view, unregistered: true };
  }),

  "map/agents/update": withSession(async ({ server, session, params }) => {
    const { agentId, state, metadata, environment, permissionOverrides } = parseParams(updateParams, params);
    const agent = requireOwned(server, session, agentId);
    const extras = {
      ...agent.extras,
      ...(environment !== undefined && { environment }),
      ...(permissionOverrides !== undefined && { permissionOverrides }),
    };
    const merged = { ...agent.metadata, ...metadata };
    assertModest("agent", [merged, extras]);
    if (state !== undefined) setState(server, agent, state);
    agent.metadata = merged;
    agent.extras = extras;
    return { agent: server.agents.agentView(agent) };
  }),

  "map/agents/list": withSession(({ server, session, params }) => {
    const { filter = {}, limit = 500, cursor } = parseParams(listParams, params);
    const matches = (agent: Agent): boolean =>
      mayList(session, agent) &&
      oneOf(filter.states, agent.state) &&
      oneOf(filter.roles, agent.role) &&
      (isEmpty(filter.scopes) || filter.scopes?.some((scope) => agent.scopes.has(scope)) === true) &&
      (filter.parent === undefined || agent.parent === filter.parent) &&
      (filter.ownerId === undefined || agent.session.participantId === filter.ownerId) &&
      (filter.hasChildren === undefined || server.agents.childrenOf(agent).length > 0 === filter.hasChildren);
    const all = [...server.agents.inSpace(session.space)].filter(matches);
    const start = cursor === undefined ? 0 : all.findIndex((agent) => agent.id === cursor) + 1;
    if (cursor !== undefined && start === 0) throw new MapError("INVALID_PARAMS", "cursor: unknown");
    const page = all.slice(start, start + limit);
    const last = page.at(-1);
    return {
      agents: page.map((agent) => server.agents.agentView(agent)),
      ...(start + limit < all.length && last !== undefined && { nextCursor: last.id }),
    };
  }),

  "map/agents/get": withSession(({ server, session, params }) => {
    const { agentId, include = {} } = parseParams(getParams, params);
    const { agents } = server;
    const agent = visible(server, session, agentId);
    const { maxDepth = 100 } = include;
    const parent = agents.parentOf(agent);
    const views = (some: readonly Agent[]) =>
      some.filter((one) => mayList(session, one)).map((one) => agents.agentView(one));
    return {
      agent: agents.agentView(agent),
      ...(include.parent === true && parent !== undefined && { parent: views([parent])[0] }),
      ...(include.children === true && { children: views(agents.childrenOf(agent)) }),
      ...(include.siblings === true && {
        siblings: views(parent === undefined ? [] : agents.childrenOf(parent).filter((one) => one !== agent)),
      }),
      ...(include.ancestors === true && { ancestors: views(ancestorsOf(agent, agents, maxDepth)) }),
      ...(include.descendants === true && { descendants: views(descendantsOf(agent, agents, maxDepth)) }),
    };
  }),

  "map/agents/stop": lifecycle("stopping", "stopping"),
  "map/agents/suspend": lifecycle("suspended", "suspended"),
  "map/agents/resume": lifecycle("active", "resumed"),

  "map/structure/graph": withSession(({ server, session, params }) => {
    const { rootAgentId, depth = 100 } = parseParams(
      z.object({ rootAgentId: id.optional(), depth: z.int().min(1).max(100).optional() }),
      params,
    );
    const { agents } = server;
    const root = rootAgentId === undefined ? undefined : visible(server, session, rootAgentId);
    const nodes = (
      root === undefined ? [...agents.inSpace(session.space)] : [root, ...descendantsOf(root, agents, depth)]
    ).filter((agent) => mayList(session, agent));
    const shown = new Set(nodes);
    return {
      nodes: nodes.map((agent) => agents.agentView(agent)),
      edges: nodes.flatMap((agent) => {
        const parent = agents.parentOf(agent);
        return parent !== undefined && shown.has(parent)
          ? [{ from: parent.id, to: agent.id, type: "parent-child" }]
          : [];
      }),
    };
  }),
};

function lifecycle(state: string, flag: string): MethodTable[string] {
  return withSession(({ server, session, params }) => {
    const agent = requireOwned(server, session, parseParams(named, params).agentId);
    setState(server, agent, state);
    return { [flag]: true, agent: server.agents.agentView(agent) };
  });
}

async function register(
  { server, session, connection }: SessionCall,
  params: RegisterParams,
): Promise<Agent> {
  assertModest("agent", [params.metadata, params.visibility, ...EXTRAS.map((field) => params[field])]);
  const wanted = wantedId(server, session, params.agentId);
  await claim(server, session, wanted);
  // Whoever is gone meanwhile has left already: nothing would ever end this agent but the session.
  if (session.connection !== connection) throw new MapError("AUTH_REQUIRED", "the connection is closed");
  // Nothing is awaited from the checks to the entry in the registry.
  if (session.agents.size >= server.limits.maxAgents && !session.agents.has(wanted)) {
    throw new MapError("QUOTA_EXCEEDED", `a session can have ${server.limits.maxAgents} agents`);
  }
  const known = server.agents.find(session.space, wanted);
  if (known !== undefined && !mayTakeOver(session, known)) throw taken(wanted);
  if (
    server.sessions.byParticipant(session.space, wanted) !== undefined &&
    session.participantId !== wanted
  ) {
    throw taken(wanted);
  }
  assertParent(server, session, params.parent);
  if (known !== undefined && known.session !== session) known.session.removeAgent(wanted);
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
    createdAt: server.clock.now(),
    ...(params.name !== undefined && { name: params.name }),
    ...(params.description !== undefined && { description: params.description }),
    ...(params.role !== undefined && { role: params.role }),
    ...(params.parent !== undefined && { parent: params.parent }),
  };
  server.agents.add(agent);
  session.addAgent(wanted);
  for (const scopeId of params.scopes ?? []) {
    const scope = server.agents.findScope(session.space, scopeId);
    if (scope !== undefined) server.agents.enter(scope, agent);
  }
  await server.sessions.save(session);
  server.agentEvent("agent_registered", agent, { name: agent.name, role: agent.role });
  server.agentRegistered(agent);
  return agent;
}

/** Decisions A5, F1: the swarm's agents are their member tokens'; names of participants are nobody's agents. */
function wantedId(server: MapServer, session: Session, wanted: string | undefined): string {
  const { principal } = session;
  if (principal?.role === "member") {
    if (wanted !== undefined && wanted !== principal.id) {
      throw new MapError("PERMISSION_DENIED", `this token serves the agent ${principal.id} and no other`);
    }
    return principal.id;
  }
  if (wanted === undefined) return server.ids.ordered();
  if (!server.mayUseId(principal, wanted)) {
    throw new MapError("PERMISSION_DENIED", `the id ${wanted} is reserved`, { agentId: wanted });
  }
  return wanted;
}

/** The same party again, or, where nobody authenticates, the id of somebody who is away. */
function mayTakeOver(session: Session, { session: holder }: Agent): boolean {
  if (holder === session) return true;
  const principal = principalKey(session.principal);
  if (principal !== principalKey(holder.principal)) return false;
  return principal !== undefined || holder.connection === undefined;
}

async function claim(server: MapServer, session: Session, agentId: string): Promise<void> {
  const principal = principalKey(session.principal);
  if (principal === undefined) return;
  const row: AgentClaim = {
    kind: "map_agent.claim",
    space: session.space,
    id: agentId,
    principal,
    // Only its member comes here under a name of the swarm: whoever had it before the swarm did, has it no more.
    ...(server.isReserved(agentId) && { takesOver: true }),
  };
  try {
    await server.store.commit({ appends: [], rows: [row] });
  } catch (error) {
    throw error instanceof RowConflictError ? taken(agentId) : error;
  }
}

/** What is said to somebody's children is meant for them: nobody makes themselves another's child. */
function assertParent(server: MapServer, session: Session, parent: string | undefined): void {
  const holder = parent === undefined ? undefined : server.agents.find(session.space, parent);
  if (holder === undefined) return;
  if (principalKey(holder.session.principal) === principalKey(session.principal)) return;
  throw new MapError("PERMISSION_DENIED", `the agent ${parent} is somebody else's`);
}

function taken(agentId: string): MapError {
  return new MapError("AGENT_EXISTS", undefined, { agentId });
}

function visible(server: MapServer, session: Session, agentId: string): Agent {
  const agent = server.agents.require(session.space, agentId);
  if (!mayList(session, agent)) throw new MapError("AGENT_NOT_FOUND", undefined, { agentId });
  return agent;
}

/** @throws MapError AGENT_NOT_FOUND, PERMISSION_DENIED */
function requireOwned(server: MapServer, session: Session, agentId: string): Agent {
  const agent = visible(server, session, agentId);
  const own = agent.session === session || agent.session.participantId === session.participantId;
  if (!own && session.principal?.role !== "admin") {
    throw new MapError("PERMISSION_DENIED", `the agent ${agentId} is somebody else's`);
  }
  return agent;
}

function setState(server: MapServer, agent: Agent, state: string): void {
  assertAgentState(state);
  const previousState = agent.state;
  agent.state = state;
  if (state !== previousState)
    server.agentEvent("agent_state_changed", agent, { previousState, newState: state });
}

function isEmpty(values: readonly string[] | undefined): boolean {
  return values === undefined || values.length === 0;
}

function oneOf(values: readonly string[] | undefined, value: string | undefined): boolean {
  return isEmpty(values) || (value !== undefined && values?.includes(value) === true);
}
