/** ASP: agent_id. The pattern is the reference's own; the rest closes what the signature leaves open. */

/** Stands for every other member of a swarm. */
export const BROADCAST = "broadcast";

const PATTERN = /^[a-zA-Z0-9_.-]{1,256}$/u;

/**
 * The signed text is recipient, type and content without separators. An id that holds the name of a type, or ends in
 * the beginning of one, would let a signature for another recipient be read as one for it.
 */
const HOLDS_TYPE = /.(message|system|notification)/u;
const ENDS_LIKE_TYPE = /.(syste|notificatio)$/u;

/** Why this cannot be the id of an agent; `undefined` if it can. */
export function checkAgentId(id: string): string | undefined {
  if (!PATTERN.test(id)) return "must be 1 to 256 of the characters a-z, A-Z, 0-9, _, . and -";
  if (id === BROADCAST) return `must not be "${BROADCAST}": it stands for every member`;
  if (HOLDS_TYPE.test(id) || ENDS_LIKE_TYPE.test(id)) {
    return "must not contain the name of a message type: its signatures could be read in two ways";
  }
  return undefined;
}
