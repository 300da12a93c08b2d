import type { MAILMessage } from "./message.js";

/** 1 is served first. */
export type Tier = 1 | 2 | 3 | 4 | 5;

/**
 * The tiers of [MAIL-PRIO-01]. The specification has no row for a completion by an agent; it shares a tier with
 * interrupts, so that queued agent mail cannot delay the end of a task. Callers break ties by order of arrival.
 */
export function tierOf(message: MAILMessage): Tier {
  switch (message.message.sender.address_type) {
    case "system":
      return 1;
    case "admin":
    case "user":
      return 2;
    case "agent":
      return tierOfAgentMail(message.msg_type);
  }
}

function tierOfAgentMail(type: MAILMessage["msg_type"]): Tier {
  switch (type) {
    case "interrupt":
    case "broadcast_complete":
      return 3;
    case "broadcast":
      return 4;
    case "request":
    case "response":
      return 5;
  }
}
