/** Reserved names and the lists of types, apart from the schemas so that a browser can load them without zod. */

/** MAIL: Special agent `all`. As a recipient it stands for every agent of the local swarm. */
export const MAIL_ALL_LOCAL_AGENTS = "all";

/** The kinds of addresses. */
export const MAIL_ADDRESS_TYPES = ["admin", "agent", "user", "system"] as const;

/** The kinds of messages. */
export const MAIL_MESSAGE_TYPES = [
  "request",
  "response",
  "broadcast",
  "interrupt",
  "broadcast_complete",
] as const;

/** Message types between swarms. A completion is sent as a `response`, because the wrapper has no type for it. */
export const MAIL_INTERSWARM_MESSAGE_TYPES = ["request", "response", "broadcast", "interrupt"] as const;
