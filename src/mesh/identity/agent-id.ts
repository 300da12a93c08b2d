/** ASP: agent_id. The pattern of the reference, plus checks that close an ambiguity of the signature. */

/** The recipient that stands for every other member of a swarm. */
export const BROADCAST = "broadcast";

const PATTERN = /^[a-zA-Z0-9_.-]{1,256}$/u;

/**
 * The signed text is recipient, type and content without separators. An id that contains a type's name, or ends with
 * the beginning of one, would make a signature for another recipient valid for it.
 */
const HOLDS_TYPE = /.(message|system|notification)/u;
const ENDS_LIKE_TYPE = /.(syste|notificatio)$/u;

/** Returns why this is not a valid agent id; `undefined` if it is valid. */
export function checkAgentId(id: string): string | undefined {
  if (!PATTERN.test(id)) return "must be 1 to 256 of the characters a-z, A-Z, 0-9, _, . and -";
  if (id === BROADCAST) return `must not be "${BROADCAST}", which stands for every member`;
  if (HOLDS_TYPE.test(id) || ENDS_LIKE_TYPE.test(id)) {
    return "must not contain the name of a message type, because its signatures would be ambiguous";
  }
  return undefined;
}
