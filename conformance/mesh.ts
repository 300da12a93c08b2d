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
    ["ASP-INFR-01", "MUST", "Agents communicate over HTTPS, each with a certificate that the others trust."],
    ["ASP-INFR-02", "MUST", "TLS is 1.2 or newer; HTTP/2 is spoken, and HTTP/1.1 still works."],
    ["ASP-INFR-03", "MUST", "An endpoint has a domain name, unless it is for development."],
    ["ASP-AGNT-01", "MUST", "An agent has a unique id with one unambiguous spelling."],
    ["ASP-AGNT-02", "MUST", "An agent has an Ed25519 key pair; weak and malformed keys are refused."],
    ["ASP-AGNT-03", "MUST", "An agent's state is stored: after a restart it is the same."],
  ]),
  ...chapter("Message Format", [
    ["ASP-MSGF-01", "MUST", "Every message has the nine required fields; a missing one is 400."],
    ["ASP-MSGF-02", "MUST", "Optional fields may be absent or null, and must be valid if present."],
    ["ASP-MSGF-03", "MUST", "Each type of reference has its required fields."],
    ["ASP-MSGF-04", "MUST", "Attachments are URLs or inline base64, within limits."],
    ["ASP-MSGF-05", "MUST", "A message is a message, a system message or a notification."],
    ["ASP-MSGF-06", "MUST", "A recipient is one agent or broadcast."],
    ["ASP-MSGF-07", "MUST", "A message that has expired has no effect."],
    ["ASP-SIGN-01", "MUST", "The signature covers the SHA-256 of the six fields, concatenated."],
    [
      "ASP-SIGN-02",
      "MUST",
      "A message whose signed fields were changed, or that another key signed, is rejected.",
    ],
  ]),
  ...chapter("Swarm Operations", [
    ["ASP-OPER-01", "MUST", "Creating a swarm is local, and makes its creator the master and only member."],
    ["ASP-OPER-02", "MUST", "An invite is a swarm:// URL with a signed JWT of the six claims."],
    ["ASP-OPER-03", "MUST", "An invite that has expired or was used max_uses times admits no agent."],
    ["ASP-OPER-04", "MUST", "The answer to a join has status, swarm and all members with their keys."],
    ["ASP-OPER-05", "MUST", "The master notifies all members of a join."],
    ["ASP-OPER-06", "MUST", "A member that leaves notifies every member."],
    ["ASP-OPER-07", "MUST", "The master notifies the kicked member and the remaining members."],
    ["ASP-OPER-08", "MUST", "The master can make another member the master, and notifies all."],
    ["ASP-OPER-09", "MUST", "With require_approval the master decides on each join."],
    ["ASP-OPER-10", "MUST", "With allow_member_invite members may invite."],
    [
      "ASP-OPER-11",
      "MUST",
      "Five kinds of lifecycle events are recorded with their fields in the message queue.",
    ],
    ["ASP-OPER-12", "MUST", "A lifecycle record that cannot be stored does not block the operation."],
  ]),
  ...chapter("Endpoints", [
    ["ASP-ENDP-01", "MUST", "There are /swarm/message, /swarm/join, /swarm/health and /swarm/info."],
    ["ASP-ENDP-02", "MUST", "Requests carry Content-Type, X-Agent-ID and X-Swarm-Protocol."],
    ["ASP-ENDP-03", "MUST", "200 for success, 202 for a deferred decision."],
    ["ASP-ENDP-04", "MUST", "400 for a malformed message."],
    ["ASP-ENDP-05", "MUST", "401 for an invalid signature."],
    ["ASP-ENDP-06", "MUST", "403 for a sender that is not a member or lacks permission."],
    ["ASP-ENDP-07", "MUST", "404 for an unknown swarm."],
    ["ASP-ENDP-08", "MUST", "429 for too many requests."],
  ]),
  ...chapter("Security", [
    ["ASP-SECU-01", "MUST", "All messages are signed, and verified with the key that is registered."],
    ["ASP-SECU-02", "MUST", "Only members can send to a swarm."],
    ["ASP-SECU-03", "MUST", "Only the master kicks and, unless the settings say otherwise, invites."],
    ["ASP-SECU-04", "MUST", "Messages of muted agents and swarms are silently dropped."],
    ["ASP-SECU-05", "MUST", "Certificates are validated; one of an unknown CA is rejected."],
    ["ASP-SECU-06", "SHOULD", "60 messages a minute per sender."],
    ["ASP-SECU-07", "SHOULD", "10 joins an hour per address."],
    ["ASP-SECU-08", "SHOULD", "100 messages a minute per swarm."],
  ]),
  ...chapter("Hybrid Mode: GitHub Integration", [
    ["ASP-GHUB-01", "MUST", "A notification carries the URL and the action of the GitHub event."],
    ["ASP-GHUB-02", "MUST", "There are five events."],
  ]),
  ...chapter("State Management", [
    ["ASP-STAT-01", "MUST", "The state file is valid JSON of the published schema, in UTF-8."],
    ["ASP-STAT-02", "MUST", "The state file can be read and written by its owner only."],
    ["ASP-STAT-03", "MUST", "A muted message is answered with 200, not queued, and not in the history."],
    ["ASP-STAT-04", "MUST", "Fetched keys are stored with the time and URL of the fetch."],
    ["ASP-STAT-05", "SHOULD", "A key is fetched again when a signature is invalid."],
    ["ASP-STAT-06", "SHOULD", "A key is fetched again when it is older than its lifetime of a day."],
    ["ASP-STAT-07", "MUST", "An export records its time; an import removes it."],
    ["ASP-STAT-08", "MUST", "An import is validated, also its version, and merges or replaces."],
    ["ASP-STAT-09", "MUST", "Incoming messages are queued, each id once per sender."],
  ]),
  ...chapter("Claude Code Integration", [
    ["ASP-WAKE-01", "MUST", "When a message was queued, the configured wake endpoint is notified."],
    [
      "ASP-WAKE-02",
      "MUST",
      "The agent receives recent messages, members, mutes and the number of pending messages.",
    ],
    ["ASP-WAKE-03", "MUST", "The agent can reply, mute, leave, and create an issue."],
  ]),
  ...chapter("Versioning", [
    ["ASP-VERS-01", "MUST", "Every message names its protocol version."],
    ["ASP-VERS-02", "SHOULD", "Messages of the same major version are accepted."],
  ]),
  ...chapter("in addition", [
    ["ASP-OURS-01", "ours", "A repeated message has no second effect."],
    ["ASP-OURS-02", "ours", "Of any number of concurrent joins, a single-use invite admits one."],
    ["ASP-OURS-03", "ours", "Accepted messages survive SIGKILL: nothing is lost, nothing happens twice."],
    ["ASP-OURS-04", "ours", "An operation reaches absent members when they return."],
    ["ASP-OURS-05", "ours", "A pinned key is replaced only by its owner's rotation or endpoint."],
    [
      "ASP-OURS-06",
      "ours",
      "Inbox, outbox and wake need the operator's token, and are not on the mesh's listener.",
    ],
    ["ASP-OURS-07", "ours", "No mutated message is accepted."],
    [
      "ASP-OURS-08",
      "ours",
      "A peer of the mesh is addressed as name@alias, and its answer reaches the sender of the request.",
    ],
    ["ASP-OURS-09", "ours", "A fetch for a peer reaches no address that the operator did not allow."],
    ["ASP-OURS-10", "ours", "Content of peers reaches agents as data, with its sender named."],
    [
      "ASP-OURS-11",
      "ours",
      "A master that announces keys other than the known ones is detected and reported.",
    ],
    [
      "ASP-OURS-12",
      "ours",
      "Between Mailrooms the fields that the protocol leaves unsigned cannot be changed, added or removed.",
    ],
  ]),
];
