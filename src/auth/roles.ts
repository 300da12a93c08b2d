/**
 * `agent` is another swarm, identified by the swarm's name; `member` serves one local agent, identified by the agent's
 * name (decision A5). Strongest first: a caller with several roles has the first one.
 */
export const ROLES = ["admin", "user", "agent", "member"] as const;
/** What a principal may do. `agent` is another swarm, `member` an agent in another process. */
export type Role = (typeof ROLES)[number];
