import type { Section } from "../declare.js";
import { anyText, choice, duration, httpUrl, listOf, path, size, text, truth, whole } from "../kinds.js";

export function meshSettings(mesh: Section) {
  return {
    listen: mesh.optional("listen", {
      kind: text,
      otherwise: "no listener",
      doc: "`host:port` where peers reach this agent, with TLS. Only the four routes of the protocol are there.",
      flag: { names: ["--mesh-listen"], value: "<host:port>", commands: ["server"] },
    }),
    cert: mesh.optional("cert", {
      kind: path,
      otherwise: "after `mesh init --dev`: `tls/dev.pem` of the data directory",
      doc: "The certificate of the mesh's listener (PEM). Read again on SIGHUP.",
    }),
    key: mesh.optional("key", {
      kind: path,
      otherwise: "after `mesh init --dev`: `tls/dev.key` of the data directory",
      doc: "Its private key (PEM).",
    }),
    ca: mesh.optional("ca", {
      kind: path,
      otherwise: "after `mesh init --dev`: `tls/dev-ca.pem` of the data directory, if there is one",
      doc: "An authority that is trusted beside those of the system when peers are called.",
    }),
    allow: mesh.setting("allow", {
      kind: listOf(text),
      default: [],
      doc: "Addresses that are not of the public internet and may be called all the same, as `10.0.0.0/8` or `loopback`.",
    }),
    proxies: mesh.setting("proxies", {
      kind: whole(),
      default: 0,
      doc: "How many proxies stand before the listener: callers are told apart by the address that the outermost saw.",
    }),
    endpoint: mesh.optional("endpoint", {
      kind: httpUrl,
      doc: "The public URL of this agent, for `mesh init`: `https://agent.example.com/swarm`. Never guessed.",
    }),
    stateFile: mesh.optional("state_file", {
      kind: path,
      otherwise: "`mesh/state.json` of the data directory",
      doc: "Where the membership state of the protocol is written after each change.",
    }),
    name: mesh.setting("name", { kind: anyText, default: "", doc: "Shown to peers at `/swarm/info`." }),
    description: mesh.setting("description", { kind: anyText, default: "", doc: "Shown beside it." }),
    keyPolicy: mesh.setting("key_policy", {
      kind: choice(["refresh", "pin"]),
      default: "refresh",
      doc: "Whether a changed key is taken from the member's endpoint, or only from a rotation message.",
    }),
    seal: mesh.setting("seal", {
      kind: truth,
      default: true,
      doc: "Whether messages are signed a second time, over the fields that the protocol leaves unsigned.",
    }),
    sealPolicy: mesh.setting("seal_policy", {
      kind: choice(["optional", "remember", "require"]),
      default: "remember",
      doc: "Whether that is demanded of nobody, of who has done it before, or of everybody. If it is there it must hold.",
    }),
    checkJoiners: mesh.setting("check_joiners", {
      kind: choice(["required", "if_reachable", "off"]),
      default: "if_reachable",
      doc: "Whether a joiner's endpoint must answer with the key it asks to join with.",
    }),
    retentionDays: mesh.setting("retention_days", {
      kind: whole(),
      default: 0,
      doc: "Messages that nobody waits for are removed after so many days, both ways (see mesh.md); 0 keeps them for ever.",
    }),
    limits: mesh.section("limits", "What peers may do.", meshLimits),
    bridge: mesh.section("bridge", "Messages of peers as tasks of the swarm.", bridgeSettings),
    wake: mesh.section("wake", "Who is told that a message came.", wakeSettings),
    github: mesh.section("github", "Notifications of GitHub.", githubSettings),
  };
}

/** What the mesh takes in one piece: see `LIMITS.bodyBytes` there. */
const LARGEST_MESSAGE = 2 * 1024 * 1024;

function meshLimits(limits: Section) {
  const limit = (name: string, standard: number, doc: string) =>
    limits.setting(name, { kind: whole({ min: 1 }), default: standard, doc });
  return {
    senderPerMinute: limit("sender_per_minute", 60, "Messages of one sender in a minute."),
    senderBytesPerMinute: limits.setting("sender_bytes_per_minute", {
      // A message that never fits would be tried again and again.
      kind: size({ min: LARGEST_MESSAGE }),
      default: 8 * 1024 * 1024,
      doc: "How large they may be together; at least 2mb, which a single message may have.",
    }),
    swarmPerMinute: limit("swarm_per_minute", 100, "Messages of one swarm in a minute."),
    joinsPerHour: limit("joins_per_hour", 10, "Joins of one address in an hour; of IPv6, of one /64."),
    tasksPerHour: limit("tasks_per_hour", 20, "Tasks that one peer may open in an hour."),
    messagesPerHour: limit(
      "messages_per_hour",
      60,
      "Further messages of one peer in an hour to the tasks that it has here, or in reply to one message of ours.",
    ),
    connections: limit("connections", 1_000, "Connections to the mesh's listener at once."),
    connectionsPerAddress: limit(
      "connections_per_address",
      64,
      "Of them, those of one address (of IPv6, of one /64). Not counted behind `proxies`.",
    ),
    bodyMemory: limits.setting("body_memory", {
      kind: size({ min: 4 * LARGEST_MESSAGE }),
      default: 64 * 1024 * 1024,
      doc: "Memory for messages that are being received; one address has a quarter of it. Who finds no room is told to come back (503).",
    }),
  };
}

function bridgeSettings(bridge: Section) {
  return {
    enabled: bridge.setting("enabled", {
      kind: truth,
      default: true,
      doc: "Whether messages become tasks. Otherwise they stay in the inbox.",
    }),
    entrypoint: bridge.optional("entrypoint", {
      kind: text,
      otherwise: "the swarm's entrypoint",
      doc: "The agent that gets them.",
    }),
    contextMessages: bridge.setting("context_messages", {
      kind: whole({ max: 100 }),
      default: 10,
      doc: "How many earlier messages of the mesh swarm it is shown.",
    }),
    contextTime: bridge.setting("context_time", {
      kind: duration(),
      default: 0,
      doc: "Only those that are not older than this; 0 for any.",
    }),
  };
}

function wakeSettings(wake: Section) {
  return {
    url: wake.optional("url", {
      kind: httpUrl,
      doc: "Told of every message by a POST, with the secret as `X-Wake-Secret`.",
    }),
    command: wake.setting("command", {
      kind: listOf(text),
      default: [],
      doc: "A program and its arguments, run for every message; what came is on its standard input. No shell.",
    }),
    secret: wake.optional("secret", {
      kind: text,
      secret: true,
      doc: "The secret for `url`, and the one that `POST /api/wake` demands; without it there is no such route.",
    }),
  };
}

function githubSettings(github: Section) {
  return {
    secret: github.optional("secret", {
      kind: text,
      secret: true,
      doc: "Of GitHub's webhook, for `POST /mesh/github`; without it there is no such route.",
    }),
    swarm: github.optional("swarm", { kind: text, doc: "The alias of the swarm that is told." }),
    to: github.setting("to", { kind: text, default: "broadcast", doc: "Who in it." }),
    token: github.optional("token", {
      kind: text,
      secret: true,
      env: ["GITHUB_TOKEN"],
      doc: "For the action `github_create_issue`.",
    }),
  };
}
