/** `swarm://<swarm_id>@<host[:port]>?token=<jwt>`, the form in which people exchange invites. */
import { MailroomError } from "../../base/index.js";
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
 * Reads an invite URL. Its signature is checked later, because the master's key is unknown before joining.
 * @throws MailroomError when the URL is malformed or contradicts its token
 */
export function parseInviteUrl(text: string): InviteUrl {
  const groups = SHAPE.exec(text.trim())?.groups;
  const token = new URLSearchParams(groups?.query ?? "").get("token");
  if (groups === undefined || token === null) {
    throw invalid("must have the form swarm://<swarm_id>@<host>?token=<jwt>");
  }
  const reading = readInvite(token);
  if ("refusal" in reading) throw invalid(reading.refusal.message);
  const { claims } = reading.invite;
  if (groups.swarm?.toLowerCase() !== claims.swarmId) throw invalid("and its token name different swarms");
  const authority = `https://${groups.authority}`;
  if (!URL.canParse(authority) || new URL(authority).host !== new URL(claims.endpoint).host) {
    throw invalid("and its token name different hosts: it may have been tampered with");
  }
  return { token, invite: reading.invite };
}

function invalid(why: string): MailroomError {
  return new MailroomError("invalid_invite", `the invite ${why}`);
}
