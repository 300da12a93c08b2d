/** Settings of federation with other MAIL swarms. */
import {
  boolean,
  choice,
  defineSettings,
  duration,
  integer,
  list,
  path,
  type SettingValues,
  table,
  textKind,
} from "../base/index.js";

export const federationSettings = defineSettings({
  enabled: boolean("federation.enabled", {
    default: true,
    doc: "Accept mail from other swarms and send mail to them.",
  }),
  allow: list("federation.allow", textKind, {
    default: [],
    doc: "Destinations outside the public internet that may be called, such as `10.0.0.0/8` or `desk.internal:8443`. Loopback is always allowed for registered swarms.",
  }),
  registryFile: path("server.swarm.registry", {
    aliases: ["server.swarm.registry_file"],
    doc: "File of other swarms: read at startup, rewritten after each change.",
    flag: { names: ["--swarm-registry"], short: "-rf", value: "<file>", commands: ["server"] },
  }),
  ca: path("federation.ca", {
    doc: "Certificate authority trusted in addition to the system's when calling other swarms (PEM file).",
  }),
  // Decision E1: a peer's external id may differ from the name of its swarm.
  identities: table("federation.identities", textKind, {
    default: {},
    doc: "Callers whose id is not the name of their swarm, and the swarms they represent.",
  }),
  deliveryTimeout: duration("federation.delivery_timeout", {
    min: 1,
    default: "2m",
    doc: "How long to retry the delivery of a message before notifying its sender.",
  }),
  answerTimeout: duration("federation.answer_timeout", {
    min: 1,
    default: "1d",
    doc: "The same for answers and task endings, which the other swarm waits for.",
  }),
  askInterval: duration("federation.ask_interval", {
    default: "30s",
    doc: "Time before another swarm is first asked whether it still works on an unanswered request; 0 never asks. Only Mailroom servers can be asked.",
  }),
  attemptTimeout: duration("federation.attempt_timeout", {
    min: 1,
    default: "15s",
    doc: "Time limit for one delivery attempt.",
  }),
  healthInterval: duration("federation.health_interval", {
    min: 1_000,
    default: "30s",
    doc: "Time between two health checks of another swarm.",
  }),
  healthTimeout: duration("federation.health_timeout", {
    min: 1,
    default: "5s",
    doc: "Time limit for one health check.",
  }),
  failuresToInactive: integer("federation.failures_to_inactive", {
    min: 1,
    default: 3,
    doc: "Consecutive failed checks after which a swarm is skipped.",
  }),
  successesToActive: integer("federation.successes_to_active", {
    min: 1,
    default: 1,
    doc: "Consecutive successful checks after which a skipped swarm is used again.",
  }),
  // Decision E9: only the key pinned at registration is trusted.
  signatures: choice("federation.signatures", ["optional", "required"], {
    default: "optional",
    doc: "`required` rejects messages that are not signed by the key seen at registration.",
  }),
  discovery: choice("federation.discovery", ["propose", "register", "off"], {
    default: "propose",
    doc: "Swarms that agents discover are proposed to an admin, registered without a token, or ignored.",
  }),
  maxHops: integer("federation.max_hops", {
    min: 1,
    default: 8,
    doc: "Swarms that a message may have passed through.",
  }),
  requestsPerMinute: integer("federation.requests_per_minute", {
    default: 60_000,
    doc: "Messages per minute from one swarm before it gets 429; 0 means no limit.",
  }),
  maxWaiting: integer("federation.max_waiting", {
    min: 1,
    default: 10_000,
    doc: "Messages waiting for delivery to one swarm.",
  }),
  attempts: integer("federation.attempts", { min: 1, default: 256, doc: "Delivery attempts at once." }),
  attemptsPerSwarm: integer("federation.attempts_per_swarm", {
    min: 1,
    default: 32,
    doc: "Delivery attempts to one swarm at once.",
  }),
  dedupeWindow: duration("federation.dedupe_window", {
    min: 1,
    default: "7d",
    doc: "How long ids of received messages are stored to detect duplicates. Must exceed every peer's delivery timeout.",
  }),
});

/** Times are milliseconds. */
export type FederationSettings = SettingValues<typeof federationSettings>;
