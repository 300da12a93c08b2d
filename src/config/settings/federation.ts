import type { Section } from "../declare.js";
import { choice, duration, listOf, mapOf, path, text, truth, whole } from "../kinds.js";

export function federationSettings(federation: Section) {
  return {
    enabled: federation.setting("enabled", {
      kind: truth,
      default: true,
      doc: "Whether other swarms are served and can be written to.",
    }),
    allow: federation.setting("allow", {
      kind: listOf(text),
      default: [],
      doc: "Hosts, addresses and networks beyond the public internet that may be called, as `10.0.0.0/8` or `desk.internal:8443`.",
    }),
    ca: federation.optional("ca", {
      kind: path,
      doc: "An authority that is trusted beside those of the system when other swarms are called (PEM).",
    }),
    identities: federation.setting("identities", {
      kind: mapOf(text),
      default: {},
      doc: "Ids of callers that are not the name of their swarm, and the swarms they are.",
    }),
    deliveryTimeout: federation.setting("delivery_timeout", {
      kind: duration({ min: 1 }),
      default: 120_000,
      doc: "How long the delivery of a message is tried before its sender is told that it failed.",
    }),
    answerTimeout: federation.setting("answer_timeout", {
      kind: duration({ min: 1 }),
      default: 86_400_000,
      doc: "The same for answers and for the end of a task, which somebody over there waits for.",
    }),
    attemptTimeout: federation.setting("attempt_timeout", {
      kind: duration({ min: 1 }),
      default: 15_000,
      doc: "How long one attempt may take.",
    }),
    replyTimeout: federation.setting("reply_timeout", {
      kind: duration(),
      default: 900_000,
      doc: "How long another swarm may take to answer a request before who asked is told; 0 for ever.",
    }),
    healthInterval: federation.setting("health_interval", {
      kind: duration({ min: 1_000 }),
      default: 30_000,
      doc: "How often other swarms are checked.",
    }),
    failuresToInactive: federation.setting("failures_to_inactive", {
      kind: whole({ min: 1 }),
      default: 3,
      doc: "Failed checks in a row after which a swarm is skipped.",
    }),
    signatures: federation.setting("signatures", {
      kind: choice(["optional", "required"]),
      default: "optional",
      doc: "`required` refuses messages without a signature by the key that was seen at registration.",
    }),
    discovery: federation.setting("discovery", {
      kind: choice(["propose", "register", "off"]),
      default: "propose",
      doc: "What becomes of swarms that agents discover: proposed to an admin, or registered without a token.",
    }),
    maxHops: federation.setting("max_hops", {
      kind: whole({ min: 1 }),
      default: 8,
      doc: "Swarms that a message may have come through.",
    }),
    requestsPerMinute: federation.setting("requests_per_minute", {
      kind: whole(),
      default: 60_000,
      doc: "Messages of one swarm in a minute, before it gets 429; 0 for no limit.",
    }),
  };
}
