/** Senders and recipients of a message, in words. */
import { partyOf } from "../../engine/pure.js";
import { type MAILMessage, recipientsOf } from "../../mail/pure.js";

export function senderText(message: MAILMessage): string {
  return partyOf(message.message.sender);
}

export function recipientsText(message: MAILMessage): string {
  const names = recipientsOf(message).map(partyOf);
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
}

/** A request and the response to it have one id. */
export function requestIdOf(message: MAILMessage): string | undefined {
  return message.msg_type === "request" || message.msg_type === "response"
    ? message.message.request_id
    : undefined;
}
