/** `map/connect`, `map/disconnect`, `map/authenticate`, `map/auth/refresh` (map-mail 1.3–1.5). */
import { z } from "zod";
import type { Principal } from "../../../auth/principal.js";
import type { AuthFailureReason } from "../../../auth/result.js";
import { MapError } from "../../domain/errors.js";
import { parseParams } from "../../domain/params.js";
import type { MAIL_CAPABILITIES, MailCapabilities } from "../../domain/types.js";
import type { MapConnection, Proof } from "../connection.js";
import type { MapServer } from "../map-server.js";
import type { Call, MethodTable } from "../methods.js";
import { type ConnectedType, PARTICIPANT_TYPES, principalKey, Session } from "../session.js";
import { withSession } from "./with-session.js";

const PROTOCOL_VERSION = 1;

const secret = z.string().max(16_384);
const credentials = z.object({
  method: z.string().max(256),
  credential: secret.optional(),
  token: secret.optional(),
});

const connectParams = z.object({
  protocolVersion: z.unknown().optional(),
  participantType: z.enum(PARTICIPANT_TYPES).optional(),
  participantId: z.string().min(1).max(256).optional(),
  name: z.string().max(256).optional(),
  capabilities: z.object({ mail: z.record(z.string(), z.unknown()).optional() }).optional(),
  sessionId: z.string().max(256).optional(),
  resumeToken: z.string().max(256).optional(),
  disconnectPolicy: z
    .object({
      agentBehavior: z.enum(["unregister", "orphan", "grace-period"]),
      gracePeriodMs: z.number().min(0).optional(),
    })
    .optional(),
  auth: credentials.optional(),
});
type ConnectParams = z.infer<typeof connectParams>;

type AuthErrorCode =
  | "invalid_credentials"
  | "expired"
  | "insufficient_scope"
  | "method_not_supported"
  | "auth_required";

type Authentication =
  | { readonly ok: true; readonly principal: Principal | undefined; readonly proof?: Proof }
  | { readonly ok: false; readonly missing: true }
  | { readonly ok: false; readonly missing: false; readonly code: AuthErrorCode; readonly message: string };

const METHODS = ["bearer", "api-key"];

const FAILURES: Readonly<Record<AuthFailureReason, AuthErrorCode>> = {
  missing: "auth_required",
  bad_format: "invalid_credentials",
  unknown: "invalid_credentials",
  expired: "expired",
  unavailable: "invalid_credentials",
};

export const connectMethods: MethodTable = {
  "map/connect": async (call) => {
    const params = parseParams(connectParams, call.params);
    const { protocolVersion } = params;
    if (protocolVersion !== undefined && protocolVersion !== PROTOCOL_VERSION) {
      throw new MapError("INVALID_PARAMS", "protocolVersion: this server speaks version 1", {
        supportedVersions: [PROTOCOL_VERSION],
      });
    }
    const { server, connection } = call;
    // Said again, it tells the caller what it has: that is how capabilities are learnt after map/authenticate.
    if (call.session !== undefined) {
      const resumeToken = await server.sessions.renew(call.session);
      return connected(server, call.session, { resumeToken, reconnected: false });
    }
    const found = await authenticate(server, connection, params.auth ?? headerCredentials(connection));
    if (found.ok) {
      // Before anything is awaited: it may be revoked meanwhile.
      connection.letInWith(found.proof);
      return establish(call, params, found.principal);
    }
    if (found.missing) {
      connection.wishes = params;
      return { protocolVersion: PROTOCOL_VERSION, authRequired: authRequired() };
    }
    connection.authFailures++;
    throw new MapError(found.code === "expired" ? "TOKEN_EXPIRED" : "AUTH_FAILED", found.message, {
      authError: found.code,
      authRequired: authRequired(),
    });
  },

  "map/authenticate": async (call) => {
    const given = parseParams(credentials, call.params);
    const { server, connection } = call;
    const found = await authenticate(server, connection, given);
    if (!found.ok) {
      connection.authFailures++;
      const error = found.missing
        ? { code: "auth_required", message: "no credential was given" }
        : { code: found.code, message: found.message };
      return { success: false, error };
    }
    if (
      call.session !== undefined &&
      principalKey(call.session.principal) !== principalKey(found.principal)
    ) {
      return {
        success: false,
        error: { code: "insufficient_scope", message: "the session belongs to somebody else; connect anew" },
      };
    }
    connection.letInWith(found.proof);
    const session =
      call.session ??
      (await sessionFor(call, parseParams(connectParams, connection.wishes), found.principal)).session;
    return {
      success: true,
      sessionId: session.id,
      participantId: session.participantId,
      ...(found.principal !== undefined && { principal: { id: session.participantId } }),
    };
  },

  "map/auth/refresh": async (call) => {
    const refresh = connectMethods["map/authenticate"];
    if (refresh === undefined || call.session === undefined) throw new MapError("AUTH_REQUIRED");
    return refresh(call);
  },

  "map/disconnect": withSession(async ({ server, session, connection, afterReply }) => {
    const resumeToken = await server.sessions.renew(session);
    const closedAt = server.clock.now();
    afterReply(() => connection.finish());
    return {
      acknowledged: true,
      session: { id: session.id, createdAt: session.createdAt, lastActiveAt: session.lastActiveAt, closedAt },
      resumeToken,
    };
  }),
};

function headerCredentials({ credential }: MapConnection): z.infer<typeof credentials> | undefined {
  return credential === undefined ? undefined : { method: "bearer", credential };
}

function authRequired(): object {
  return { methods: METHODS, required: true, realm: "mailroom" };
}

async function authenticate(
  server: MapServer,
  { authenticator }: MapConnection,
  given: z.infer<typeof credentials> | undefined,
): Promise<Authentication> {
  // The SDK's two classes put it into different fields.
  const credential = given?.credential ?? given?.token;
  if (authenticator === undefined) return { ok: true, principal: undefined };
  if (given === undefined || given.method === "none" || credential === undefined) {
    if (server.authRequired) return { ok: false, missing: true };
    // The same caller as on HTTP, where the authenticator knows one; nobody otherwise.
    const nobody = await authenticator.authenticate(undefined);
    return { ok: true, principal: nobody.ok ? nobody.principal : undefined };
  }
  if (!METHODS.includes(given.method)) {
    const message = `the method ${JSON.stringify(given.method.slice(0, 50))} is not supported; use ${METHODS.join(" or ")}`;
    return { ok: false, missing: false, code: "method_not_supported", message };
  }
  const result = await authenticator.authenticate(credential);
  if (!result.ok) {
    if (result.reason === "unavailable") throw new MapError("EXHAUSTED", result.detail);
    return { ok: false, missing: false, code: FAILURES[result.reason], message: result.detail };
  }
  // Decisions A5: a remote swarm comes in through federation, not here.
  if (result.principal.role === "agent") {
    return {
      ok: false,
      missing: false,
      code: "insufficient_scope",
      message: "this token is for interswarm messages only",
    };
  }
  const { principal } = result;
  return { ok: true, principal, proof: { credential, tokenId: principal.tokenId } };
}

async function establish(
  call: Call,
  params: ConnectParams,
  principal: Principal | undefined,
): Promise<object> {
  const { session, resumeToken, reconnected } = await sessionFor(call, params, principal);
  return connected(call.server, session, { resumeToken, reconnected });
}

interface Established {
  readonly session: Session;
  readonly resumeToken: string;
  readonly reconnected: boolean;
}

async function sessionFor(
  { server, connection }: Call,
  params: ConnectParams,
  principal: Principal | undefined,
): Promise<Established> {
  const type: ConnectedType = params.participantType ?? "client";
  const wishes = params.capabilities?.mail ?? {};
  const grantOf = (participantType: ConnectedType) => ({
    capabilities: grantedMail(server.mailFor(principal), wishes),
    observer: server.mayObserve(principal, participantType),
  });
  const resumed =
    params.resumeToken === undefined
      ? undefined
      : await server.sessions.resume(params.resumeToken, principal, grantOf);
  const session = resumed?.session ?? newSession(server, params, type, principal, grantOf(type));
  session.regrant(grantOf(session.participantType));
  if (params.disconnectPolicy !== undefined) session.policy = params.disconnectPolicy;
  const resumeToken = resumed?.token ?? (await server.sessions.open(session));
  if (connection.isClosed) {
    // Lost while it was being let in: the session waits like any other whose connection is gone.
    server.sessions.lose(session);
    throw new MapError("AUTH_REQUIRED", "the connection is closed");
  }
  server.attach(session, connection);
  return { session, resumeToken, reconnected: resumed !== undefined };
}

/** Who authenticated has a stable id; who did not is their session (map-mail 3.2, decisions F1). */
function newSession(
  server: MapServer,
  params: ConnectParams,
  type: ConnectedType,
  principal: Principal | undefined,
  grant: ConstructorParameters<typeof Session>[1],
): Session {
  const id = server.ids.ordered();
  const space = server.spaceOf(principal);
  const wanted = type === "agent" ? params.participantId : undefined;
  const free =
    wanted !== undefined &&
    server.mayUseId(principal, wanted) &&
    server.sessions.byParticipant(space, wanted) === undefined &&
    server.agents.find(space, wanted) === undefined;
  return new Session(
    {
      id,
      participantId: principalKey(principal) ?? (free ? wanted : id),
      participantType: type,
      space,
      createdAt: server.clock.now(),
      ...(params.name !== undefined && { name: params.name }),
      ...(principal !== undefined && { principal }),
    },
    grant,
  );
}

/** What the server allows, less what the participant explicitly does not want. */
function grantedMail(allowed: MailCapabilities, wishes: Readonly<Record<string, unknown>>): MailCapabilities {
  const granted = (capability: (typeof MAIL_CAPABILITIES)[number]): boolean =>
    allowed[capability] && wishes[capability] !== false;
  return {
    canCreate: granted("canCreate"),
    canJoin: granted("canJoin"),
    canInvite: granted("canInvite"),
    canViewHistory: granted("canViewHistory"),
    canCreateThreads: granted("canCreateThreads"),
  };
}

function connected(
  server: MapServer,
  session: Session,
  { resumeToken, reconnected }: { readonly resumeToken: string; readonly reconnected: boolean },
): object {
  const owned = [...session.agents].flatMap((id) => server.agents.find(session.space, id) ?? []);
  // Decisions A5: it serves its agent and nothing else.
  const free = session.principal?.role !== "member";
  return {
    protocolVersion: PROTOCOL_VERSION,
    sessionId: session.id,
    participantId: session.participantId,
    systemInfo: server.systemInfo,
    capabilities: {
      observation: { canObserve: true, canQuery: true },
      messaging: { canSend: true, canReceive: true, canBroadcast: free },
      lifecycle: { canRegister: true, canUnregister: true, canSpawn: free },
      scopes: { canCreateScopes: free },
      streaming: { supportsAck: true, supportsFlowControl: false, supportsPause: false },
      ...(server.conversations !== undefined && { mail: { enabled: true, ...session.capabilities } }),
    },
    reconnected,
    ownedAgents: owned.map(({ id }) => id),
    reclaimedAgents: reconnected ? owned.map((agent) => server.agents.agentView(agent)) : [],
    resumeToken,
    ...(session.principal !== undefined && { principal: { id: session.participantId } }),
  };
}
