/** `swarm://<swarm_id>@<host[:port]>?token=<jwt>`: what people hand to each other. */
import { MeshError } from "../errors.js";
import { type ReadInvite, readInvite } from "./token.js";

export function formatInviteUrl(swarmId: string, endpoint: string, token: string): string {
  return `swarm://${swarmId}@${new URL(endpoint).host}?token=${token}`;
}

export interface InviteUrl {
  readonly token: string;
  readonly invite: ReadInvite;
}

const SHAPE = /^swarm:\/\/(?<swarm>[0-9a-f-]{36})@(?<authority>[^/?#@\s]+)\?(?<query>[^#\s]*)$/iu;

/**
 * Reads an invite URL. The signature cannot be judged yet, because nobody has the master's key before joining.
 * @throws MeshError when it is malformed or contradicts its own token.
 */
export function parseInviteUrl(text: string): InviteUrl {
  const groups = SHAPE.exec(text.trim())?.groups;
  const token = new URLSearchParams(groups?.query ?? "").get("token");
  if (groups === undefined || token === null) {
    throw invalid("must look like swarm://<swarm_id>@<host>?token=<jwt>");
  }
  const reading = readInvite(token);
  if ("refusal" in reading) throw invalid(reading.refusal.message);
  const { claims } = reading.invite;
  if (groups.swarm?.toLowerCase() !== claims.swarmId) throw invalid("names another swarm than its token");
  const authority = `https://${groups.authority}`;
  if (!URL.canParse(authority) || new URL(authority).host !== new URL(claims.endpoint).host) {
    throw invalid("names another host than its token: somebody may have changed it");
  }
  return { token, invite: reading.invite };
}

function invalid(why: string): MeshError {
  return new MeshError("invalid_invite", `the invite ${why}`);
}
