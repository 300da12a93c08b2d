/** The Agent Swarm Protocol, 0.1.0. */
import type { Requirement } from "./requirement.js";

type Row = readonly [id: string, level: Requirement["level"], rule: string];

function chapter(name: string, rows: readonly Row[]): Requirement[] {
  return rows.map(([id, level, rule]) => ({
    id,
    level,
    part: "mesh",
    rule,
    source: `Agent Swarm Protocol: ${name}`,
  }));
}

export const MESH_REQUIREMENTS: readonly Requirement[] = [
  ...chapter("Requirements", [
    ["ASP-INFR-01", "MUST", "Agents meet over HTTPS, each with a certificate that the others trust."],
    ["ASP-INFR-02", "MUST", "TLS is 1.2 or newer; HTTP/2 is spoken, and HTTP/1.1 still works."],
    ["ASP-INFR-03", "MUST", "An endpoint has a domain name, unless it is for development."],
    ["ASP-AGNT-01", "MUST", "An agent has a unique id that cannot be read in two ways."],
    ["ASP-AGNT-02", "MUST", "An agent has an Ed25519 key pair; weak and malformed keys are refused."],
    ["ASP-AGNT-03", "MUST", "What an agent knows is kept: opened again, it knows what it knew."],
  ]),
  ...chapter("Message Format", [
    ["ASP-MSGF-01", "MUST", "Every message has the nine required fields; without one it is 400."],
    ["ASP-MSGF-02", "MUST", "Optional fields may be absent or null, and are valid if they are there."],
    ["ASP-MSGF-03", "MUST", "Each type of reference has its required fields."],
    ["ASP-MSGF-04", "MUST", "Attachments are URLs or inline base64, within limits."],
    ["ASP-MSGF-05", "MUST", "A message is a message, a system message or a notification."],
    ["ASP-MSGF-06", "MUST", "A recipient is one agent or broadcast."],
    ["ASP-MSGF-07", "MUST", "A message that has expired has no effect."],
    ["ASP-SIGN-01", "MUST", "What is signed is the SHA-256 of the six fields, one after the other."],
    ["ASP-SIGN-02", "MUST", "A message whose signed fields were changed, or by another key, is refused."],
  ]),
  ...chapter("Swarm Operations", [
    ["ASP-OPER-01", "MUST", "Creating a swarm is local, and makes its creator the master and only member."],
    ["ASP-OPER-02", "MUST", "An invite is a swarm:// URL with a signed JWT of the six claims."],
    ["ASP-OPER-03", "MUST", "An invite that has expired or was used max_uses times admits nobody."],
    ["ASP-OPER-04", "MUST", "The answer to a join has status, swarm and all members with their keys."],
    ["ASP-OPER-05", "MUST", "The master tells all members of who joined."],
    ["ASP-OPER-06", "MUST", "Who leaves tells every member."],
    ["ASP-OPER-07", "MUST", "The master tells who was kicked, and the remaining members."],
    ["ASP-OPER-08", "MUST", "The master can make another member the master, and tells all."],
    ["ASP-OPER-09", "MUST", "With require_approval the master decides about each join."],
    ["ASP-OPER-10", "MUST", "With allow_member_invite members may invite."],
    [
      "ASP-OPER-11",
      "MUST",
      "Five kinds of lifecycle events are noted with their fields in the message queue.",
    ],
    ["ASP-OPER-12", "MUST", "A note that cannot be stored does not stand in the way of the operation."],
  ]),
  ...chapter("Endpoints", [
    ["ASP-ENDP-01", "MUST", "There are /swarm/message, /swarm/join, /swarm/health and /swarm/info."],
    ["ASP-ENDP-02", "MUST", "Requests carry Content-Type, X-Agent-ID and X-Swarm-Protocol."],
    ["ASP-ENDP-03", "MUST", "200 for success, 202 for what is decided later."],
    ["ASP-ENDP-04", "MUST", "400 for a message of the wrong form."],
    ["ASP-ENDP-05", "MUST", "401 for a signature that does not hold."],
    ["ASP-ENDP-06", "MUST", "403 for who is not in the swarm or may not do this."],
    ["ASP-ENDP-07", "MUST", "404 for a swarm that is not known."],
    ["ASP-ENDP-08", "MUST", "429 for too many requests."],
  ]),
  ...chapter("Security", [
    ["ASP-SECU-01", "MUST", "All messages are signed, and verified with the key that is registered."],
    ["ASP-SECU-02", "MUST", "Only members can send to a swarm."],
    ["ASP-SECU-03", "MUST", "Only the master kicks and, unless the settings say otherwise, invites."],
    ["ASP-SECU-04", "MUST", "What muted agents and swarms say is silently dropped."],
    ["ASP-SECU-05", "MUST", "Certificates are validated; one that nobody vouches for is refused."],
    ["ASP-SECU-06", "SHOULD", "60 messages a minute per sender."],
    ["ASP-SECU-07", "SHOULD", "10 joins an hour per address."],
    ["ASP-SECU-08", "SHOULD", "100 messages a minute per swarm."],
  ]),
  ...chapter("Hybrid Mode: GitHub Integration", [
    ["ASP-GHUB-01", "MUST", "A notification carries the URL and the action of what happened on GitHub."],
    ["ASP-GHUB-02", "MUST", "There are five events."],
  ]),
  ...chapter("State Management", [
    ["ASP-STAT-01", "MUST", "The state file is valid JSON of the published schema, in UTF-8."],
    ["ASP-STAT-02", "MUST", "The state file can be read and written by its owner only."],
    ["ASP-STAT-03", "MUST", "A muted message is answered with 200, not queued, and not in the history."],
    ["ASP-STAT-04", "MUST", "Keys that were fetched are kept with the time and place they came from."],
    ["ASP-STAT-05", "SHOULD", "A key is fetched again when a signature does not hold."],
    ["ASP-STAT-06", "SHOULD", "A key is fetched again when it is older than its lifetime of a day."],
    ["ASP-STAT-07", "MUST", "An export says when it was made; an import takes that away again."],
    ["ASP-STAT-08", "MUST", "An import is validated, also its version, and merges or replaces."],
    ["ASP-STAT-09", "MUST", "Incoming messages are queued, each id once per sender."],
  ]),
  ...chapter("Claude Code Integration", [
    ["ASP-WAKE-01", "MUST", "When a message was queued, /api/wake of who is configured is told."],
    ["ASP-WAKE-02", "MUST", "The agent gets recent messages, members, mutes and how much is pending."],
    ["ASP-WAKE-03", "MUST", "The agent can reply, mute, leave, and create an issue."],
  ]),
  ...chapter("Versioning", [
    ["ASP-VERS-01", "MUST", "Every message says which version of the protocol it follows."],
    ["ASP-VERS-02", "SHOULD", "Messages of the same major version are accepted."],
  ]),
  ...chapter("in addition", [
    ["ASP-OURS-01", "ours", "A message that is sent again has no second effect."],
    ["ASP-OURS-02", "ours", "Of any number who come at once, a single-use invite admits one."],
    ["ASP-OURS-03", "ours", "What was accepted survives SIGKILL: nothing is lost, nothing happens twice."],
    ["ASP-OURS-04", "ours", "An operation reaches members that were away when they are back."],
    [
      "ASP-OURS-05",
      "ours",
      "A pinned key is not replaced by strangers, only by its owner's rotation or endpoint.",
    ],
    [
      "ASP-OURS-06",
      "ours",
      "Inbox, outbox and wake need the operator's token, and are not on the mesh's listener.",
    ],
    ["ASP-OURS-07", "ours", "No mutated message gets in."],
    ["ASP-OURS-08", "ours", "A peer of the mesh is addressed as name@alias, and its answer finds who asked."],
    ["ASP-OURS-09", "ours", "A fetch for a peer reaches no address that the operator did not allow."],
    ["ASP-OURS-10", "ours", "Content of peers reaches agents as data, with its sender named."],
    ["ASP-OURS-11", "ours", "A master that names other keys than those known is noticed and reported."],
    [
      "ASP-OURS-12",
      "ours",
      "Between Mailrooms the fields that the protocol leaves unsigned cannot be changed, added or taken away.",
    ],
  ]),
];
