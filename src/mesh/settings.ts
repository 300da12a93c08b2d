/** Settings of the Agent Swarm Protocol. */
import {
  boolean,
  bytes,
  choice,
  defineSettings,
  duration,
  httpUrl,
  integer,
  list,
  path,
  type SettingValues,
  text,
  textKind,
} from "../base/index.js";

/** Largest message that the protocol allows. */
export const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;

export const meshSettings = defineSettings({
  listen: text("mesh.listen", {
    defaultText: "no listener",
    doc: "Address (`host:port`) of the TLS listener for mesh peers. It serves only the protocol's four routes.",
    flag: { names: ["--mesh-listen"], value: "<host:port>", commands: ["server"] },
  }),
  cert: path("mesh.cert", {
    defaultText: "after `mesh init --dev`: `tls/dev.pem` in the data directory",
    doc: "Certificate of the mesh listener (PEM file). Read again on SIGHUP.",
  }),
  key: path("mesh.key", {
    defaultText: "after `mesh init --dev`: `tls/dev.key` in the data directory",
    doc: "Private key of the mesh listener (PEM file).",
  }),
  ca: path("mesh.ca", {
    defaultText: "after `mesh init --dev`: `tls/dev-ca.pem` in the data directory, if it exists",
    doc: "Certificate authority trusted in addition to the system's when calling peers (PEM file).",
  }),
  allow: list("mesh.allow", textKind, {
    default: [],
    doc: "Destinations outside the public internet that may be called, such as `10.0.0.0/8` or `loopback`.",
  }),
  proxies: integer("mesh.proxies", {
    default: 0,
    doc: "Number of proxies in front of the listener. Callers are identified by the address that the outermost proxy saw.",
  }),
  endpoint: httpUrl("mesh.endpoint", {
    doc: "Public URL of this agent, for `mesh init`: `https://agent.example.com/swarm`. It is never guessed.",
  }),
  stateFile: path("mesh.state_file", {
    defaultText: "`mesh/state.json` in the data directory",
    doc: "File to which the protocol's membership state is written after each change.",
  }),
  name: text("mesh.name", { default: "", doc: "Name shown to peers at `/swarm/info`." }),
  description: text("mesh.description", { default: "", doc: "Description shown to peers at `/swarm/info`." }),
  keyPolicy: choice("mesh.key_policy", ["refresh", "pin"], {
    default: "refresh",
    doc: "`refresh` accepts a changed key from the member's endpoint; `pin` accepts it only from a rotation message.",
  }),
  seal: boolean("mesh.seal", {
    default: true,
    doc: "Seal messages: sign them a second time, over the fields that the protocol leaves unsigned.",
  }),
  sealPolicy: choice("mesh.seal_policy", ["optional", "remember", "require"], {
    default: "remember",
    doc: "When a seal is required: never, from peers that have sealed before, or always. A seal that is present must verify.",
  }),
  checkJoiners: choice("mesh.check_joiners", ["required", "if_reachable", "off"], {
    default: "if_reachable",
    doc: "Whether the endpoint of a joining agent must answer with the key it joins with.",
  }),
  // Decision G5: how long delivery is attempted.
  deadline: duration("mesh.deadline", {
    min: 1,
    default: "14d",
    doc: "Age at which an undelivered message is abandoned.",
  }),
  resignAfter: duration("mesh.resign_after", {
    min: 1,
    default: "12h",
    doc: "Age at which a pending message is re-signed with a fresh timestamp; receivers reject messages older than a day.",
  }),
  maxWaiting: integer("mesh.max_waiting", {
    min: 1,
    default: 10_000,
    doc: "Messages waiting for delivery to one peer.",
  }),
  keyTtl: duration("mesh.key_ttl", {
    min: 1,
    default: "1d",
    doc: "Age at which a cached key is fetched again.",
  }),
  keyRefreshPause: duration("mesh.key_refresh_pause", {
    default: "5m",
    doc: "Least time between two fetches of an agent's key.",
  }),
  inviteLifetime: duration("mesh.invite_lifetime", {
    min: 1,
    default: "1d",
    doc: "How long a new invite is valid unless it says otherwise.",
  }),
  rejectionWindow: duration("mesh.rejection_window", {
    default: "1h",
    doc: "How long a rejected lifecycle message is retried: it may have overtaken an earlier one.",
  }),
  retentionDays: integer("mesh.retention_days", {
    default: 0,
    doc: "Days after which settled messages are removed, sent and received (see mesh.md); 0 keeps them forever.",
  }),
  limits: {
    senderPerMinute: integer("mesh.limits.sender_per_minute", {
      min: 1,
      default: 60,
      doc: "Messages per minute from one sender.",
    }),
    senderBytesPerMinute: bytes("mesh.limits.sender_bytes_per_minute", {
      // A message that never fits would be retried again and again.
      min: MAX_MESSAGE_BYTES,
      default: "8mb",
      doc: "Size of the messages per minute from one sender; at least 2mb, the largest message.",
    }),
    swarmPerMinute: integer("mesh.limits.swarm_per_minute", {
      min: 1,
      default: 100,
      doc: "Messages per minute in one swarm.",
    }),
    joinsPerHour: integer("mesh.limits.joins_per_hour", {
      min: 1,
      default: 10,
      doc: "Join requests per hour from one address, or one IPv6 /64.",
    }),
    failuresPerMinute: integer("mesh.limits.failures_per_minute", {
      min: 1,
      default: 120,
      doc: "Rejected requests per minute from one address.",
    }),
    tasksPerHour: integer("mesh.limits.tasks_per_hour", {
      min: 1,
      default: 20,
      doc: "Tasks that one peer may open per hour.",
    }),
    messagesPerHour: integer("mesh.limits.messages_per_hour", {
      min: 1,
      default: 60,
      doc: "Further messages per hour from one peer to its tasks, or in reply to one of our messages.",
    }),
    connections: integer("mesh.limits.connections", {
      min: 1,
      default: 1_000,
      doc: "Open connections to the mesh listener.",
    }),
    connectionsPerAddress: integer("mesh.limits.connections_per_address", {
      min: 1,
      default: 64,
      doc: "Open connections from one address, or one IPv6 /64. Not counted behind `proxies`.",
    }),
    requestsPerAddress: integer("mesh.limits.requests_per_address", {
      min: 1,
      default: 256,
      doc: "Requests of one address, or one IPv6 /64, being served over all its connections. Beyond it callers get 503. One HTTP/2 connection can have 32.",
    }),
    bodyMemory: bytes("mesh.limits.body_memory", {
      min: 4 * MAX_MESSAGE_BYTES,
      default: "64mb",
      doc: "Memory for messages that are being received; one address can use a quarter of it. Beyond it callers get 503.",
    }),
  },
  bridge: {
    enabled: boolean("mesh.bridge.enabled", {
      default: true,
      doc: "Turn messages into tasks. Otherwise they stay in the inbox.",
    }),
    entrypoint: text("mesh.bridge.entrypoint", {
      defaultText: "the swarm's entrypoint",
      doc: "Agent that receives the messages.",
    }),
    contextMessages: integer("mesh.bridge.context_messages", {
      max: 100,
      default: 10,
      doc: "Number of earlier messages of the mesh swarm shown to that agent.",
    }),
    contextTime: duration("mesh.bridge.context_time", {
      default: 0,
      doc: "Age limit of those messages; 0 means no limit.",
    }),
  },
  wake: {
    url: httpUrl("mesh.wake.url", {
      doc: "URL that gets a POST for every message, with the secret as `X-Wake-Secret`.",
    }),
    command: list("mesh.wake.command", textKind, {
      default: [],
      doc: "Program and arguments to run for every message, without a shell. The message is on its standard input.",
    }),
    secret: text("mesh.wake.secret", {
      secret: true,
      doc: "Secret sent to `url`, and required by `POST /api/wake`. Without it that route does not exist.",
    }),
  },
  github: {
    secret: text("mesh.github.secret", {
      secret: true,
      doc: "Secret of the GitHub webhook, for `POST /mesh/github`. Without it that route does not exist.",
    }),
    swarm: text("mesh.github.swarm", { doc: "Alias of the swarm that receives the notifications." }),
    to: text("mesh.github.to", { default: "broadcast", doc: "Recipient in that swarm." }),
    token: text("mesh.github.token", {
      secret: true,
      env: ["GITHUB_TOKEN"],
      doc: "Token for the action `github_create_issue`.",
    }),
  },
});

export type MeshSettings = SettingValues<typeof meshSettings>;
