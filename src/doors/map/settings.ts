/** Settings of MAP. */
import {
  boolean,
  bytes,
  choiceKind,
  defineSettings,
  duration,
  integer,
  list,
  type SettingValues,
  text,
} from "../../base/index.js";
import { MAIL_CAPABILITIES, type MailCapabilities } from "../../conversations/index.js";

const limits = {
  maxFrame: bytes("map.limits.frame", { default: "1mb", doc: "Size of one frame." }),
  handshakeTimeout: duration("map.limits.handshake_timeout", {
    min: 1,
    default: "10s",
    doc: "Time until a new connection must have sent `map/connect`.",
  }),
  pingInterval: duration("map.limits.ping_interval", {
    min: 1,
    default: "30s",
    doc: "Time between pings. A connection that misses two in a row is closed.",
  }),
  maxBuffered: bytes("map.limits.buffered", {
    default: "16mb",
    doc: "Data waiting to be sent on one connection. Beyond it the connection is closed with 1013.",
  }),
  maxUnread: bytes("map.limits.unread", {
    default: "1mb",
    doc: "Data waiting to be sent on one connection above which its requests wait.",
  }),
  maxMemory: bytes("map.limits.memory", {
    default: "96mb",
    doc: "Unfinished frames, waiting requests and unsent data of all connections. Beyond it the callers with the most lose connections.",
  }),
  maxMemoryPerCaller: bytes("map.limits.memory_per_caller", {
    default: "32mb",
    doc: "The same for the connections of one caller, or of one address without a caller.",
  }),
  maxReads: integer("map.limits.reads", {
    min: 1,
    default: 16,
    doc: "Pages being read at once for all callers; two for one caller.",
  }),
  maxInFlight: integer("map.limits.in_flight", {
    min: 1,
    default: 256,
    doc: "Requests of one connection being processed. Beyond it the server stops reading.",
  }),
  maxWaiting: integer("map.limits.waiting", {
    min: 1,
    default: 10_000,
    doc: "Requests of one connection received before reading stopped, waiting to be processed.",
  }),
  maxRequestSize: integer("map.limits.request_size", {
    min: 1,
    default: 8 * 1024 * 1024,
    doc: "Characters of all requests of one connection. Beyond it the server stops reading; at twice the limit requests are rejected.",
  }),
  requestsPerSecond: integer("map.limits.requests_per_second", {
    default: 0,
    doc: "Average requests per second of one connection, with bursts of twice as many; 0 means no limit.",
  }),
  maxSubscriptions: integer("map.limits.subscriptions", {
    min: 1,
    default: 100,
    doc: "Subscriptions of one session.",
  }),
  maxSubscriptionsPerCaller: integer("map.limits.subscriptions_per_caller", {
    min: 1,
    default: 1_000,
    doc: "Subscriptions of all sessions of one caller.",
  }),
  maxAgents: integer("map.limits.agents", {
    min: 1,
    default: 1_000,
    doc: "Agents registered by one session.",
  }),
  maxRegistered: bytes("map.limits.registered_size", {
    default: "4mb",
    doc: "Agents, scopes and filters of one caller, including disconnected sessions; those end first.",
  }),
  maxScopes: integer("map.limits.scopes", { min: 1, default: 10_000, doc: "Scopes in total." }),
  maxScopesEach: integer("map.limits.scopes_per_caller", {
    min: 1,
    default: 1_000,
    doc: "Scopes of one caller.",
  }),
  maxConnections: integer("map.limits.connections", { min: 1, default: 10_000, doc: "Open connections." }),
  maxConnectionsPerCaller: integer("map.limits.connections_per_caller", {
    min: 1,
    default: 250,
    doc: "Open connections of one caller.",
  }),
  maxConnectionsPerAddress: integer("map.limits.connections_per_address", {
    min: 1,
    default: 1_000,
    doc: "Open connections from one address.",
  }),
  maxPendingPerAddress: integer("map.limits.pending_per_address", {
    min: 1,
    default: 100,
    doc: "Open connections from one address that have not completed `map/connect`.",
  }),
  maxFramesBeforeConnect: integer("map.limits.frames_before_connect", {
    min: 1,
    default: 20,
    doc: "Frames of one connection before `map/connect` has succeeded.",
  }),
  maxBytesBeforeConnect: bytes("map.limits.size_before_connect", {
    default: "128kb",
    doc: "Data received on one connection before `map/connect` has succeeded.",
  }),
  maxMalformed: integer("map.limits.malformed_frames", {
    min: 1,
    default: 20,
    doc: "Frames of one connection per minute that are not valid JSON-RPC. Beyond it the connection is closed.",
  }),
  maxMalformedPerAddress: integer("map.limits.malformed_frames_per_address", {
    min: 1,
    default: 200,
    doc: "The same for one address. Beyond it the address cannot open connections.",
  }),
  maxPings: integer("map.limits.pings", {
    min: 1,
    default: 120,
    doc: "WebSocket pings and pongs of one connection per minute. Beyond it the connection is closed.",
  }),
  maxAuthFailures: integer("map.limits.auth_failures", {
    min: 1,
    default: 5,
    doc: "Failed authentications before a connection is closed.",
  }),
  resumeWindow: duration("map.limits.resume_window", {
    default: "5m",
    doc: "How long a disconnected session can be resumed.",
  }),
  maxLostSessions: integer("map.limits.lost_sessions", {
    min: 1,
    default: 1_000,
    doc: "Disconnected sessions of one caller that can be resumed. Beyond it the oldest ends.",
  }),
  maxHeld: integer("map.limits.held", {
    min: 1,
    default: 100,
    doc: "Messages held for a disconnected agent.",
  }),
  maxHeldSize: bytes("map.limits.held_size", {
    default: "4mb",
    doc: "Their size for one session. Beyond it the oldest are dropped.",
  }),
  maxHeldSizePerCaller: bytes("map.limits.held_size_per_caller", {
    default: "16mb",
    doc: "Their size for all sessions of one caller.",
  }),
  maxHeldSizeTotal: bytes("map.limits.held_size_total", {
    default: "32mb",
    doc: "Their size for all callers.",
  }),
  heldFor: duration("map.limits.held_for", { default: "1m", doc: "How long they are held." }),
  recordingTimeout: duration("map.limits.recording_timeout", {
    min: 1,
    default: "2s",
    doc: "How long `map/send` waits for its MAP turn to be recorded.",
  }),
  eventRing: integer("map.limits.event_ring", {
    min: 1,
    default: 10_000,
    doc: "Core events kept in memory for `map/replay`.",
  }),
  eventRingBytes: bytes("map.limits.event_ring_size", {
    default: "16mb",
    doc: "Memory for those events.",
  }),
};

export const mapSettings = defineSettings({
  enabled: boolean("map.enabled", { default: true, doc: "Serve MAP at `/map`." }),
  mail: boolean("map.mail", {
    default: true,
    doc: "Offer conversations. Without them every `mail/*` method fails with 10010.",
  }),
  capabilities: list("map.capabilities", choiceKind(MAIL_CAPABILITIES), {
    default: MAIL_CAPABILITIES,
    doc: "What participants may do in conversations. Using another capability fails with 10003.",
  }),
  isolate: boolean("map.isolate", {
    default: false,
    doc: "Give every caller agents and conversations of its own, invisible to other callers.",
  }),
  summaryModel: text("map.summary_model", {
    doc: "Model that writes summaries, such as `openai/gpt-5-mini`; keys and proxy as for agents. Without one, summaries are extractive. Its calls belong to no task: usage and budgets do not include them.",
  }),
  summaryTimeout: duration("map.summary_timeout", {
    min: 1,
    default: "30s",
    doc: "Time limit for that model, including retries. After it the summary is extractive.",
  }),
  limits,
});

/** The capabilities that the setting names. */
export function capabilitiesOf(names: MapSettings["capabilities"]): MailCapabilities {
  const has = (name: (typeof MAIL_CAPABILITIES)[number]): boolean => names.includes(name);
  return {
    canCreate: has("canCreate"),
    canJoin: has("canJoin"),
    canInvite: has("canInvite"),
    canViewHistory: has("canViewHistory"),
    canCreateThreads: has("canCreateThreads"),
  };
}

export type MapSettings = SettingValues<typeof mapSettings>;
/** Each limit has an error that names it (law 8). Times are milliseconds. */
export type MapLimits = MapSettings["limits"];
