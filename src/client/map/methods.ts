/** The methods of MAP as types: parameters and results by name. */
import type {
  Conversation,
  ConversationTurn,
  Participant,
  ParticipantRole,
  Permissions,
  Presence,
  Summary,
  SummaryOptions,
  Thread,
  Unread,
  Visibility,
} from "../conversations-wire.js";
import type { ConversationEvent } from "./events.js";

type Fields = Readonly<Record<string, unknown>>;
type Order = "asc" | "desc";

/** Parameters of every `mail/*` and `mailroom/*` method. */
interface Acting {
  /** `actAs` selects another of the connection's own ids. */
  readonly _meta?: { readonly actAs?: string };
}

interface InConversation extends Acting {
  readonly conversationId: string;
}

interface Paged {
  readonly limit?: number;
  readonly cursor?: string;
}

interface Page {
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

/** Lists of agents and scopes end without a cursor. */
type Rest = Pick<Page, "nextCursor">;

interface StatusChange extends InConversation {
  readonly reason?: string;
}

interface Invitee {
  readonly id: string;
  readonly role?: ParticipantRole;
  readonly permissions?: Partial<Permissions>;
}

/** Invitations of ids that have no owner yet, to be passed on to those who will register under them. */
interface Invited {
  readonly _meta?: { readonly invitations: Readonly<Record<string, string>> };
}

/** Parameters of a new conversation. */
export interface NewConversation extends Acting {
  readonly type?: Conversation["type"];
  readonly subject?: string;
  readonly parentConversationId?: string;
  readonly parentTurnId?: string;
  readonly initialParticipants?: readonly Invitee[];
  readonly initialTurn?: {
    readonly contentType: string;
    readonly content: unknown;
    readonly visibility?: Visibility;
  };
  /** `joinPolicy` is `open` or `invite`. */
  readonly metadata?: Fields;
}

/** A filter of conversations. All given fields must match. */
export interface ConversationFilter {
  readonly type?: readonly Conversation["type"][];
  readonly status?: readonly Conversation["status"][];
  readonly participantId?: string;
  readonly createdAfter?: number;
  readonly createdBefore?: number;
  readonly parentConversationId?: string;
}

/** A filter of turns. All given fields must match. */
export interface TurnFilter {
  readonly threadId?: string;
  readonly includeAllThreads?: boolean;
  readonly contentTypes?: readonly string[];
  readonly participantId?: string;
  readonly afterTurnId?: string;
  readonly beforeTurnId?: string;
  readonly afterTimestamp?: number;
  readonly beforeTimestamp?: number;
}

/** Parameters of a new turn. */
export interface NewTurn {
  /** `text`, `data`, `event`, `reference` or `x-<name>`. */
  readonly contentType: string;
  readonly content: unknown;
  readonly threadId?: string;
  readonly inReplyTo?: string;
  readonly visibility?: Visibility;
  readonly metadata?: Fields;
  /** `pending` and `streaming` turns are finished with `updateTurn`. */
  readonly status?: "pending" | "streaming" | "complete";
}

/** A filter of events. All given fields must match; each list matches any of its values. */
export interface EventFilter {
  /** Types, also with a wildcard: `mail.*`. */
  readonly eventTypes?: readonly string[];
  readonly fromAgents?: readonly string[];
  readonly fromRoles?: readonly string[];
  readonly roles?: readonly string[];
  readonly scopes?: readonly string[];
  readonly priorities?: readonly string[];
  readonly correlationIds?: readonly string[];
  readonly metadataMatch?: Fields;
  readonly environmentMatch?: Fields;
  readonly mail?: {
    readonly conversationId?: string;
    readonly threadId?: string;
    readonly participantId?: string;
    readonly contentType?: string;
  };
}

/** An address of `map/send`: an agent's id, or one of the protocol's forms. */
export type MapAddress =
  | string
  | { readonly agent: string }
  | { readonly agents: readonly string[] }
  | { readonly scope: string }
  | { readonly role: string; readonly within?: string }
  | { readonly parent: true }
  | { readonly siblings: true }
  | { readonly broadcast: true }
  | { readonly system: true }
  | { readonly children: true; readonly depth?: number }
  | { readonly ancestors: true; readonly depth?: number }
  | { readonly descendants: true; readonly depth?: number }
  | { readonly participant: string }
  | { readonly participants: "all" | "agents" | "clients" };

/** An agent that is registered with the server. */
export interface MapAgent {
  readonly id: string;
  readonly ownerId: string | null;
  readonly state: string;
  readonly name?: string;
  readonly description?: string;
  readonly role?: string;
  readonly parent?: string;
  readonly children?: readonly string[];
  readonly visibility: string;
  readonly scopes: readonly string[];
  readonly lifecycle: { readonly createdAt: number };
  readonly metadata: Fields;
}

/** A named group of agents. */
export interface MapScope {
  readonly id: string;
  readonly name?: string;
  readonly parent?: string;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly memberCount: number;
}

interface NewAgent {
  readonly agentId?: string;
  readonly name?: string;
  readonly description?: string;
  readonly role?: string;
  readonly parent?: string;
  readonly scopes?: readonly string[];
  readonly visibility?: string;
  readonly capabilities?: unknown;
  readonly environment?: unknown;
  readonly metadata?: Fields;
  /** From the response of the invitation, for an id that was invited before it had an owner. */
  readonly invitation?: string;
}

interface OneAgent {
  readonly agentId: string;
}

interface OneScope {
  readonly scopeId: string;
}

/** A lent message. `conversationId` is needed only if two tasks have a message with this id. */
interface Lent {
  readonly messageId: string;
  readonly attempt: number;
  readonly conversationId?: string;
}

/** A method: parameters and result. */
interface Method<Params extends object, Result extends object> {
  readonly params: Params;
  readonly result: Result;
}

/**
 * The methods of MAP, of its mail extension and of Mailroom's own extension, which `request` accepts. Those of the
 * connection itself (`map/connect`, `map/auth/refresh`, …) are called by the client.
 * @example
 * ```ts
 * const { unread } = await client.request("mailroom/unread", {});
 * ```
 */
export interface MapMethods {
  readonly "mail/create": Method<
    NewConversation,
    Invited & {
      readonly conversation: Conversation;
      readonly participant: Participant;
      readonly initialTurn?: ConversationTurn;
    }
  >;
  readonly "mail/list": Method<
    Acting & Paged & { readonly filter?: ConversationFilter; readonly order?: Order },
    Page & { readonly conversations: readonly Conversation[] }
  >;
  readonly "mail/get": Method<
    InConversation & {
      readonly include?: {
        readonly participants?: boolean;
        readonly participantsAfter?: string;
        readonly threads?: boolean;
        readonly recentTurns?: number;
        readonly stats?: boolean;
      };
    },
    {
      readonly conversation: Conversation;
      readonly participants?: readonly Participant[];
      readonly participantsCursor?: string;
      readonly threads?: readonly Thread[];
      readonly threadsCursor?: string;
      readonly recentTurns?: readonly ConversationTurn[];
      readonly stats?: {
        readonly totalTurns: number;
        readonly turnsByContentType: Readonly<Record<string, number>>;
        readonly activeParticipants: number;
        readonly threadCount: number;
      };
      /** Parts that were too large to be returned as asked. */
      readonly _meta?: { readonly truncated: readonly string[] };
    }
  >;
  readonly "mail/close": Method<
    StatusChange & { readonly status?: "completed" | "failed" },
    { readonly conversation: Conversation }
  >;
  readonly "mail/join": Method<
    InConversation & {
      readonly role?: ParticipantRole;
      readonly catchUp?: {
        /** A time, a turn's id, or `recent`. */
        readonly from?: number | string;
        readonly limit?: number;
        readonly includeSummary?: boolean;
      };
    },
    {
      readonly conversation: Conversation;
      readonly participant: Participant;
      readonly history?: readonly ConversationTurn[];
      readonly historyCursor?: string;
      readonly summary?: string;
    }
  >;
  readonly "mail/leave": Method<
    StatusChange & { readonly participantId?: string },
    { readonly success: true; readonly leftAt: number }
  >;
  readonly "mail/invite": Method<
    InConversation & { readonly participant: Invitee; readonly message?: string },
    Invited & { readonly invited: true; readonly participant: Participant }
  >;
  readonly "mail/turn": Method<InConversation & NewTurn, Invited & { readonly turn: ConversationTurn }>;
  readonly "mail/turns/list": Method<
    InConversation & Paged & { readonly filter?: TurnFilter; readonly order?: Order },
    Page & { readonly turns: readonly ConversationTurn[] }
  >;
  readonly "mail/thread/create": Method<
    InConversation & {
      readonly rootTurnId: string;
      readonly subject?: string;
      readonly parentThreadId?: string;
    },
    { readonly thread: Thread }
  >;
  readonly "mail/thread/list": Method<
    InConversation & Paged & { readonly parentThreadId?: string },
    Page & { readonly threads: readonly Thread[] }
  >;
  readonly "mail/summary": Method<InConversation & Omit<SummaryOptions, "signal" | "timeout">, Summary>;
  readonly "mail/replay": Method<
    InConversation & {
      readonly fromTurnId?: string;
      readonly fromTimestamp?: number;
      readonly threadId?: string;
      readonly limit?: number;
      readonly contentTypes?: readonly string[];
    },
    Page & { readonly turns: readonly ConversationTurn[]; readonly missedCount: number }
  >;
  readonly "mail/reopen": Method<StatusChange, { readonly conversation: Conversation }>;
  readonly "mail/presence": Method<
    InConversation,
    {
      readonly conversationId: string;
      readonly participants: readonly Presence[];
      /** `cut: ["participants"]` if there are more than fit. */
      readonly _meta?: { readonly cut: readonly string[] };
    }
  >;
  readonly "mailroom/pause": Method<StatusChange, { readonly conversation: Conversation }>;
  readonly "mailroom/archive": Method<StatusChange, { readonly conversation: Conversation }>;
  readonly "mailroom/delete": Method<StatusChange, { readonly deleted: true }>;
  readonly "mailroom/member": Method<
    InConversation & {
      readonly participantId: string;
      readonly role?: ParticipantRole;
      readonly permissions?: Partial<Permissions>;
    },
    { readonly participant: Participant }
  >;
  readonly "mailroom/turn/update": Method<
    InConversation & { readonly turnId: string; readonly status: "streaming" | "complete" | "failed" },
    { readonly turnId: string; readonly status: ConversationTurn["status"] }
  >;
  readonly "mailroom/read": Method<InConversation & { readonly turnId: string }, Unread>;
  readonly "mailroom/unread": Method<
    Acting & { readonly conversationIds?: readonly string[] },
    { readonly unread: readonly Unread[] }
  >;
  readonly "mailroom/search": Method<
    Acting & Paged & { readonly query: string; readonly conversationId?: string },
    Page & { readonly turns: readonly ConversationTurn[] }
  >;
  readonly "mailroom/observers/list": Method<object, { readonly observers: readonly string[] }>;
  readonly "mailroom/observers/grant": Method<
    { readonly principal: string },
    { readonly observers: readonly string[] }
  >;
  readonly "mailroom/observers/revoke": Method<
    { readonly principal: string },
    { readonly observers: readonly string[] }
  >;
  readonly "mailroom/answer": Method<
    Lent & {
      readonly calls?: readonly { readonly id?: string; readonly name: string; readonly args?: Fields }[];
      readonly text?: string;
    },
    { readonly accepted: true }
  >;
  readonly "mailroom/fail": Method<Lent & { readonly reason: string }, { readonly accepted: true }>;
  readonly "mailroom/release": Method<Lent, { readonly released: true }>;
  readonly "map/send": Method<
    { readonly to: MapAddress | readonly MapAddress[]; readonly payload?: unknown; readonly meta?: Fields },
    {
      readonly messageId: string;
      readonly delivered: readonly string[];
      readonly _meta?: {
        readonly mail:
          | { readonly recorded: true; readonly turnId: string }
          | {
              readonly recorded: false;
              readonly error: { readonly code: number; readonly message: string };
            };
      };
    }
  >;
  readonly "map/subscribe": Method<
    {
      readonly filter?: EventFilter;
      /** The id of the last event already seen, or a time. */
      readonly replayFrom?: string | number;
      readonly options?: { readonly turnReceived?: boolean };
    },
    { readonly subscriptionId: string; readonly _meta?: { readonly position?: string } }
  >;
  readonly "map/unsubscribe": Method<{ readonly subscriptionId: string }, { readonly unsubscribed: true }>;
  readonly "map/replay": Method<
    {
      readonly afterEventId?: string;
      readonly fromTimestamp?: number;
      readonly toTimestamp?: number;
      readonly filter?: EventFilter;
      readonly limit?: number;
    },
    {
      readonly events: readonly {
        readonly eventId: string;
        readonly timestamp: number;
        readonly causedBy?: readonly string[];
        readonly event: ConversationEvent;
      }[];
      readonly hasMore: boolean;
    }
  >;
  readonly "map/agents/register": Method<
    NewAgent,
    { readonly agent: MapAgent; readonly _meta?: { readonly remote?: true } }
  >;
  readonly "map/agents/spawn": Method<
    NewAgent & { readonly initialMessage?: Fields },
    { readonly agent: MapAgent; readonly messageId?: string }
  >;
  readonly "map/agents/unregister": Method<
    OneAgent,
    { readonly agent: MapAgent; readonly unregistered: true }
  >;
  readonly "map/agents/update": Method<
    OneAgent & { readonly state?: string; readonly metadata?: Fields; readonly environment?: unknown },
    { readonly agent: MapAgent }
  >;
  readonly "map/agents/list": Method<
    Paged & {
      readonly filter?: {
        readonly states?: readonly string[];
        readonly roles?: readonly string[];
        readonly scopes?: readonly string[];
        readonly parent?: string;
        readonly hasChildren?: boolean;
        readonly ownerId?: string;
      };
    },
    Rest & { readonly agents: readonly MapAgent[] }
  >;
  readonly "map/agents/get": Method<
    OneAgent & {
      readonly include?: {
        readonly parent?: boolean;
        readonly children?: boolean;
        readonly siblings?: boolean;
        readonly ancestors?: boolean;
        readonly descendants?: boolean;
        readonly maxDepth?: number;
      };
    },
    {
      readonly agent: MapAgent;
      readonly parent?: MapAgent;
      readonly children?: readonly MapAgent[];
      readonly siblings?: readonly MapAgent[];
      readonly ancestors?: readonly MapAgent[];
      readonly descendants?: readonly MapAgent[];
      /** `cut` names the lists that are not complete. */
      readonly _meta?: { readonly cut: readonly string[] };
    }
  >;
  readonly "map/agents/stop": Method<OneAgent, { readonly agent: MapAgent; readonly stopping: true }>;
  readonly "map/agents/suspend": Method<OneAgent, { readonly agent: MapAgent; readonly suspended: true }>;
  readonly "map/agents/resume": Method<OneAgent, { readonly agent: MapAgent; readonly resumed: true }>;
  readonly "map/structure/graph": Method<
    Paged & { readonly rootAgentId?: string; readonly depth?: number },
    Rest & {
      readonly nodes: readonly MapAgent[];
      readonly edges: readonly { readonly from: string; readonly to: string; readonly type: string }[];
    }
  >;
  readonly "map/scopes/create": Method<
    { readonly scopeId?: string; readonly name?: string; readonly parent?: string },
    { readonly scope: MapScope }
  >;
  readonly "map/scopes/delete": Method<OneScope, { readonly scope: MapScope; readonly deleted: true }>;
  readonly "map/scopes/get": Method<OneScope, { readonly scope: MapScope }>;
  readonly "map/scopes/list": Method<
    Paged & { readonly parent?: string },
    Rest & { readonly scopes: readonly MapScope[] }
  >;
  readonly "map/scopes/join": Method<
    OneScope & OneAgent,
    { readonly scope: MapScope; readonly agent: MapAgent; readonly joined: true }
  >;
  readonly "map/scopes/leave": Method<
    OneScope & OneAgent,
    { readonly scope: MapScope; readonly agent: MapAgent; readonly left: true }
  >;
  readonly "map/scopes/members": Method<OneScope & Paged, Rest & { readonly members: readonly string[] }>;
}

/** The names of the methods. */
export type MapMethod = keyof MapMethods;

/** Methods that may be sent again if the connection was lost before the response. */
export const REPEATABLE: ReadonlySet<string> = new Set<MapMethod>([
  "mail/get",
  "mail/list",
  "mail/presence",
  "mail/replay",
  "mail/summary",
  "mail/thread/list",
  "mail/turns/list",
  "mailroom/observers/list",
  "mailroom/read",
  "mailroom/search",
  "mailroom/unread",
  "map/agents/get",
  "map/agents/list",
  "map/replay",
  "map/scopes/get",
  "map/scopes/list",
  "map/scopes/members",
  "map/structure/graph",
]);
