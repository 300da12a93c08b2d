import type { MAILMessage } from "./message.js";

/** 1 is served first. */
export type Tier = 1 | 2 | 3 | 4 | 5;

/**
 * MAIL: Priority and Ordering. The seed has no row for a completion by an agent; it goes with the interrupts, so that
 * chatter which is still queued cannot delay the end of a task. Ties are broken by the order of arrival, which is
 * not this function's concern.
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
