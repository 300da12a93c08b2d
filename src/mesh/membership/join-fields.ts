/** What the joiner signs. No message has such a content, because messages of type system hold a JSON object. */
export function joinFields(
  message_id: string,
  timestamp: string,
  swarm_id: string,
  master: string,
  token: string,
) {
  return {
    message_id,
    timestamp,
    swarm_id,
    recipient: master,
    type: "system",
    content: `join_request ${token}`,
  };
}
