/** `map/connect`, `map/disconnect`, `map/authenticate`, `map/auth/refresh` (REF-26, REF-27). */
import { z } from "zod";
import type { AuthFailureReason, Principal } from "../../../auth/index.js";
import {
  assertBoundedSize,
  type MAIL_CAPABILITIES,
  type MailCapabilities,
  MapError,
  parseParams,
} from "../../../conversations/index.js";
import { isServerId, problemOfId } from "../access.js";
import type { MapConnection, SessionCredential } from "../connection.js";
import type { MapContext } from "../context.js";
import { type MethodCall, type MethodTable, withSession } from "../method-call.js";
import { type ConnectedType, PARTICIPANT_TYPES, principalKey, Session } from "../session.js";
import { resumeSubscriptions } from "./events.js";
import { EXTENSIONS } from "./mail-additions.js";

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
  | {
      readonly ok: true;
      readonly principal: Principal | undefined;
      readonly sessionCredential?: SessionCredential;
    }
  | { readonly ok: false; readonly missing: true }
  | { readonly ok: false; readonly missing: false; readonly code: AuthErrorCode; readonly message: string };

const METHODS = ["bearer", "api-key"];
/** The page of the console: its cookie came with the upgrade, and its proof is the credential. */
const CONSOLE = "console";

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
      throw new MapError("INVALID_PARAMS", "protocolVersion: this server supports version 1", {
        supportedVersions: [PROTOCOL_VERSION],
      });
    }
    const { context, connection } = call;
    // A repeated `map/connect` returns the session's grants: clients read their capabilities after
    // `map/authenticate` this way.
    if (call.session !== undefined) {
      const resumeToken = await context.sessions.renew(call.session);
      return connected(context, call.session, { resumeToken, reconnected: false });
    }
    const found = await authenticate(context, connection, params.auth ?? headerCredentials(connection));
    if (found.ok) {
      // Before the next await, because the token may be revoked meanwhile.
      connection.authenticatedWith(found.sessionCredential);
      return establish(call, params, found.principal);
    }
    if (found.missing) {
      // Held until the client authenticates.
      assertBoundedSize("capabilities", params.capabilities);
      connection.requestedOptions = params;
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
    const { context, connection } = call;
    const found = await authenticate(context, connection, given);
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
        error: {
          code: "insufficient_scope",
          message: "this session belongs to another principal; connect again",
        },
      };
    }
    connection.authenticatedWith(found.sessionCredential);
    if (call.session !== undefined) call.session.principal = found.principal;
    const session =
      call.session ??
      (await sessionFor(call, parseParams(connectParams, connection.requestedOptions), found.principal))
        .session;
    return {
      success: true,
      sessionId: session.id,
      participantId: session.participantId,
      ...principalView(session),
    };
  },

  "map/auth/refresh": async (call) => {
    const refresh = connectMethods["map/authenticate"];
    if (refresh === undefined || call.session === undefined) throw new MapError("AUTH_REQUIRED");
    return refresh(call);
  },

  "map/disconnect": withSession(async ({ context, session, connection, afterReply }) => {
    const resumeToken = await context.sessions.renew(session);
    const closedAt = context.clock.now();
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
  context: MapContext,
  { authenticator, credentialWith }: MapConnection,
  given: z.infer<typeof credentials> | undefined,
): Promise<Authentication> {
  // The SDK's two classes use different fields.
  const presented = given?.credential ?? given?.token;
  const isConsole = given?.method === CONSOLE && credentialWith !== undefined && presented !== undefined;
  // An unknown proof is shown to the authenticator as it is, so that it counts as a wrong guess.
  const credential = isConsole ? (credentialWith(presented) ?? presented) : presented;
  if (authenticator === undefined) return { ok: true, principal: undefined };
  if (given === undefined || given.method === "none" || credential === undefined) {
    if (context.access.authRequired) return { ok: false, missing: true };
    // The same default caller as over HTTP, if the authenticator has one; otherwise anonymous.
    const nobody = await authenticator.authenticate(undefined);
    return { ok: true, principal: nobody.ok ? nobody.principal : undefined };
  }
  if (!isConsole && !METHODS.includes(given.method)) {
    const message = `the method ${JSON.stringify(given.method.slice(0, 50))} is not supported; use ${METHODS.join(" or ")}`;
    return { ok: false, missing: false, code: "method_not_supported", message };
  }
  const result = await authenticator.authenticate(credential);
  if (!result.ok) {
    if (result.reason === "unavailable") throw new MapError("EXHAUSTED", result.detail);
    return { ok: false, missing: false, code: FAILURES[result.reason], message: result.detail };
  }
  // A remote swarm uses federation, not MAP (decision A5).
  if (result.principal.role === "agent") {
    return {
      ok: false,
      missing: false,
      code: "insufficient_scope",
      message: "this token is valid for interswarm messages only",
    };
  }
  const { principal } = result;
  const { tokenId, expiresAt } = principal;
  return { ok: true, principal, sessionCredential: { credential, tokenId, expiresAt } };
}

async function establish(
  call: MethodCall,
  params: ConnectParams,
  principal: Principal | undefined,
): Promise<object> {
  const { session, resumeToken, reconnected } = await sessionFor(call, params, principal);
  const subscriptions = reconnected ? resumeSubscriptions(call, session) : [];
  const answer = connected(call.context, session, { resumeToken, reconnected });
  return subscriptions.length === 0 ? answer : { ...answer, subscriptions };
}

interface Established {
  readonly session: Session;
  readonly resumeToken: string;
  readonly reconnected: boolean;
}

async function sessionFor(
  { context, connection }: MethodCall,
  params: ConnectParams,
  principal: Principal | undefined,
): Promise<Established> {
  connection.admit(principalKey(principal));
  const type: ConnectedType = params.participantType ?? "client";
  const requestedOptions = params.capabilities?.mail ?? {};
  const grantOf = (participantType: ConnectedType) => ({
    capabilities: grantedMail(context.access.mailFor(principal), requestedOptions),
    observer: context.access.canObserve(principal, participantType),
    ...(context.access.seesAllSpaces(principal) && { allSpaces: true as const }),
  });
  const resumed =
    params.resumeToken === undefined
      ? undefined
      : await context.sessions.resume(params.resumeToken, principal, grantOf);
  const session = resumed?.session ?? (await newSession(context, params, type, principal, grantOf(type)));
  session.regrant(grantOf(session.participantType));
  session.principal = principal;
  if (params.disconnectPolicy !== undefined) session.policy = params.disconnectPolicy;
  const resumeToken = resumed?.token ?? (await context.sessions.open(session));
  if (connection.isClosed) {
    // The connection closed while the session was being opened: the session can be resumed like any other.
    context.sessions.disconnect(session);
    throw new MapError("AUTH_REQUIRED", "the connection is closed");
  }
  context.lifecycle.attach(session, connection);
  return { session, resumeToken, reconnected: resumed !== undefined };
}

/** An authenticated caller has a stable id; an anonymous one has its session's (decision F1, REF-32). */
async function newSession(
  context: MapContext,
  params: ConnectParams,
  type: ConnectedType,
  principal: Principal | undefined,
  grant: ConstructorParameters<typeof Session>[1],
): Promise<Session> {
  const id = context.ids.ordered();
  const space = context.access.spaceOf(principal);
  const wanted = type === "agent" && principal === undefined ? params.participantId : undefined;
  const free =
    wanted !== undefined &&
    !isServerId(wanted) &&
    problemOfId(wanted) === undefined &&
    !(await context.sessions.isOwned(space, wanted)) &&
    context.access.canUseId(principal, wanted) &&
    context.sessions.byParticipant(space, wanted) === undefined &&
    context.agents.find(space, wanted) === undefined;
  return new Session(
    {
      id,
      participantId: principalKey(principal) ?? (free ? wanted : id),
      participantType: type,
      space,
      createdAt: context.clock.now(),
      ...(params.name !== undefined && { name: params.name }),
      ...(principal !== undefined && { principal }),
    },
    grant,
  );
}

/** What the server allows, minus what the participant declined. */
function grantedMail(
  allowed: MailCapabilities,
  requestedOptions: Readonly<Record<string, unknown>>,
): MailCapabilities {
  const granted = (capability: (typeof MAIL_CAPABILITIES)[number]): boolean =>
    allowed[capability] && requestedOptions[capability] !== false;
  return {
    canCreate: granted("canCreate"),
    canJoin: granted("canJoin"),
    canInvite: granted("canInvite"),
    canViewHistory: granted("canViewHistory"),
    canCreateThreads: granted("canCreateThreads"),
  };
}

function connected(
  context: MapContext,
  session: Session,
  { resumeToken, reconnected }: { readonly resumeToken: string; readonly reconnected: boolean },
): object {
  const owned = [...session.agents].flatMap((id) => context.agents.find(session.space, id) ?? []);
  // A member token serves its agent and nothing else (decision A5).
  const free = session.principal?.role !== "member";
  return {
    protocolVersion: PROTOCOL_VERSION,
    sessionId: session.id,
    participantId: session.participantId,
    systemInfo: context.systemInfo,
    capabilities: {
      observation: { canObserve: true, canQuery: true },
      messaging: { canSend: true, canReceive: true, canBroadcast: free },
      lifecycle: { canRegister: true, canUnregister: true, canSpawn: free },
      scopes: { canCreateScopes: free },
      streaming: { supportsAck: true, supportsFlowControl: false, supportsPause: false },
      ...(context.conversations !== undefined && {
        mail: { enabled: true, ...session.capabilities },
        extensions: EXTENSIONS,
      }),
    },
    reconnected,
    ownedAgents: owned.map(({ id }) => id),
    reclaimedAgents: reconnected ? owned.map((agent) => context.agents.agentView(agent)) : [],
    resumeToken,
    ...principalView(session),
  };
}

/** With `expiresAt` the SDK refreshes the credential in time. */
function principalView({ principal, participantId }: Session): object {
  if (principal === undefined) return {};
  const { expiresAt } = principal;
  return { principal: { id: participantId, ...(expiresAt !== undefined && { expiresAt }) } };
}
