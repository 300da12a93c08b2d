/** The MAP Mail Protocol, as in multi-agent-protocol 0.0.6. */
import type { Requirement } from "./requirement.js";

type Row = readonly [id: string, level: Requirement["level"], rule: string];

function chapter(name: string, rows: readonly Row[]): Requirement[] {
  return rows.map(([id, level, rule]) => ({
    id,
    level,
    part: "conversations",
    rule,
    source: `MAP Mail Protocol: ${name}`,
  }));
}

export const MAP_REQUIREMENTS: readonly Requirement[] = [
  ...chapter("Overview", [
    ["MAP-OVER-01", "MUST", "Mail is optional: messages are routed the same with and without it."],
  ]),
  ...chapter("Concepts", [
    ["MAP-CONV-01", "MUST", "A conversation has one of four types and one of five statuses."],
    ["MAP-CONV-02", "MUST", "A conversation may belong to another one, and to the turn that created it."],
    ["MAP-CONV-03", "MUST", "A turn's content type is text, data, event, reference, or x- and a name."],
    ["MAP-CONV-04", "MUST", "A turn says whether it was recorded explicitly or intercepted."],
    ["MAP-CONV-05", "MUST", "A thread begins at a turn, and threads can be nested."],
    ["MAP-CONV-06", "MUST", "A participant has one of five roles, and permissions that are enforced."],
    ["MAP-CONV-07", "MUST", "historyAccess grants the full history, the history since the join, or none."],
    ["MAP-CONV-08", "MUST", "canSeeInternal decides about internal turns."],
    [
      "MAP-CONV-09",
      "MUST",
      "A turn is visible to all, to named participants, to roles, or to its author only.",
    ],
  ]),
  ...chapter("Capability Negotiation", [
    ["MAP-CAPS-01", "MUST", "The response to map/connect lists the mail capabilities of this participant."],
    ["MAP-CAPS-02", "MUST", "Without mail the capability is absent."],
    ["MAP-CAPS-03", "MUST", "Using a capability that was not granted is an error."],
  ]),
  ...chapter("Protocol Methods", [
    ["MAP-METH-01", "MUST", "mail/create creates a conversation; its caller is the initiator."],
    ["MAP-METH-02", "MUST", "mail/get returns a conversation and the requested parts."],
    ["MAP-METH-03", "MUST", "mail/list filters by type, status and participant, and pages by cursor."],
    ["MAP-METH-04", "MUST", "mail/close sets the status to completed."],
    [
      "MAP-METH-05",
      "MUST",
      "mail/join adds a caller that was invited or addressed, or is in the conversation under another id; anyone where joining is open; with recent history and a summary on request.",
    ],
    ["MAP-METH-06", "MUST", "mail/leave ends the caller's membership."],
    ["MAP-METH-07", "MUST", "mail/invite adds a participant with a role and permissions."],
    ["MAP-METH-08", "MUST", "mail/turn records a turn of a participant."],
    [
      "MAP-METH-09",
      "MUST",
      "mail/turns/list filters by thread, content type, participant and time, in either order.",
    ],
    [
      "MAP-METH-10",
      "MUST",
      "mail/thread/create creates a thread at a turn, within another thread on request.",
    ],
    ["MAP-METH-11", "MUST", "mail/thread/list returns the threads of a conversation or of a thread."],
    ["MAP-METH-12", "MUST", "mail/summary returns or generates a summary, of a thread on request."],
    ["MAP-METH-13", "MUST", "mail/replay returns the turns after a point."],
  ]),
  ...chapter("Turn Interception via map/send", [
    ["MAP-INTC-01", "MUST", "A message with meta.mail is routed like any other."],
    ["MAP-INTC-02", "MUST", "It is recorded as one turn that names the message."],
    ["MAP-INTC-03", "MUST", "A mail.turn.added event follows."],
    ["MAP-INTC-04", "MUST", "A failure to record does not affect delivery."],
  ]),
  ...chapter("Events", [
    ["MAP-EVNT-01", "MUST", "There are eight events, each with the data of the table."],
    [
      "MAP-EVNT-02",
      "MUST",
      "filter.mail narrows by conversation, thread, participant and content type, all together.",
    ],
    ["MAP-EVNT-03", "MUST", "With filter.mail only mail events match."],
  ]),
  ...chapter("Error Codes", [
    ["MAP-ERRS-01", "MUST", "10000 for a conversation that does not exist."],
    ["MAP-ERRS-02", "MUST", "10001 for writing into a closed conversation."],
    ["MAP-ERRS-03", "MUST", "10002 for a caller that is not a participant."],
    ["MAP-ERRS-04", "MUST", "10003 for a missing capability or permission."],
    ["MAP-ERRS-05", "MUST", "10004 for a participant that has already joined."],
    ["MAP-ERRS-06", "MUST", "10005 for a participant that is not in the conversation."],
    ["MAP-ERRS-07", "MUST", "10006 for a turn that does not exist."],
    ["MAP-ERRS-08", "MUST", "10007 for a thread that does not exist."],
    ["MAP-ERRS-09", "MUST", "10008 for an unknown content type."],
    ["MAP-ERRS-10", "MUST", "10009 for threads that are nested too deep."],
    ["MAP-ERRS-11", "MUST", "10010 when mail is disabled."],
  ]),
  ...chapter("Progressive Adoption", [
    ["MAP-LEVL-01", "MUST", "Level 0: an agent without mail support works as before."],
    ["MAP-LEVL-02", "MUST", "Level 1: replies that repeat meta.mail are recorded."],
    ["MAP-LEVL-03", "MUST", "Level 2: an agent records turns in a conversation whose id it received."],
    ["MAP-LEVL-04", "MUST", "Level 3: an orchestrator creates, manages and closes conversations."],
    ["MAP-LEVL-05", "MUST", "Level 4: a client observes by events and lists without participating."],
  ]),
  ...chapter("in addition", [
    ["MAP-OURS-01", "ours", "Acknowledged changes survive the death of the process, in order."],
    ["MAP-OURS-02", "ours", "No endpoint shows a turn that its visibility or the reader's permissions hide."],
    [
      "MAP-OURS-03",
      "ours",
      "Of several concurrent changes the first committed one wins, and nothing follows a close.",
    ],
    ["MAP-OURS-04", "ours", "Malformed frames get precise errors and disturb no other client."],
    ["MAP-OURS-05", "ours", "A participant that rejoins a conversation has the permissions it left with."],
    ["MAP-OURS-06", "ours", "No participant grants a permission that it does not have."],
    [
      "MAP-OURS-20",
      "ours",
      "Every MAIL task is a conversation: its messages and actions are turns, its status follows the task.",
    ],
    ["MAP-OURS-21", "ours", "The conversation of a task exists for its owner and for admins only."],
    [
      "MAP-OURS-22",
      "ours",
      "In it the owner writes to the task and closes it; agents become members with its mail.",
    ],
    [
      "MAP-OURS-23",
      "ours",
      "A remote agent receives its mail as messages and answers with a reply or with calls, within its comm_targets.",
    ],
    ["MAP-OURS-24", "ours", "A remote agent that dies or is replaced loses no mail and answers none twice."],
    ["MAP-OURS-25", "ours", "Pages of other origins open no connection unless the settings allow them."],
    [
      "MAP-OURS-26",
      "ours",
      "A model that writes summaries sees only what all participants may see; if it fails, the fallback is marked as such.",
    ],
    ["MAP-OURS-27", "ours", "MAP uses TLS where HTTP does."],
    [
      "MAP-OURS-28",
      "ours",
      "Tasks that one remote agent serves do not affect each other, whatever ids they use.",
    ],
    [
      "MAP-OURS-29",
      "ours",
      "A caller has the same identity in MAP as over HTTP, with and without a credential.",
    ],
  ]),
];
