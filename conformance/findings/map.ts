/** Faults found in MAP, each as the rule that forbids it. */
import { chapter } from "./chapter.js";

export const MAP_FINDINGS = [
  ...chapter("conversations", "attacks through MAP", [
    [
      "MAP-F-1",
      "Reading is admitted a few pages at a time, in bytes, for callers that read their answers, and ends with its connection.",
    ],
    [
      "MAP-F-2",
      "Messages for disconnected agents are limited in bytes, per session, per caller and in total, and are released when they expire.",
    ],
    [
      "MAP-F-3",
      "Malformed frames, pings, and whatever arrives before `map/connect` are counted, and senders of too many are disconnected.",
    ],
    [
      "MAP-F-4",
      "No caller registers the id of a session as an agent, neither while the session lives nor after its end.",
    ],
    [
      "MAP-F-5",
      "An id that was named in a conversation before it had an owner is registered by the inviter's caller, or with the invitation. Until then no other caller invites or addresses it elsewhere.",
    ],
    [
      "MAP-F-6",
      "Removal, permissions, history access and roles follow the caller: no other id of the caller sheds them.",
    ],
    [
      "MAP-F-7",
      "Every door refuses JSON that is nested too deeply, at the same limit and with a precise error; what was once accepted can always be read.",
    ],
    [
      "MAP-F-8",
      "Filters, agents, scopes and lists are limited in bytes per caller; their cost does not grow with what others registered.",
    ],
    [
      "MAP-F-9",
      "A client learns when its credential expires: with the principal, and by map/auth/expiring a minute before.",
    ],
    [
      "MAP-F-10",
      "Threads with a hidden root, connected callers, foreign event ids, look-alike ids of agents, spawning by members, isolated spaces for admins, inexact request ids, cut lists and misleading errors: each as the row of the test says.",
    ],
    ["MAP-G-1", "Capabilities, joining, closing, enrollment, thread depth and limits are settings."],
    [
      "MAP-G-2",
      "The documentation describes roles, rights, visibility, history access, policies, statuses and error numbers.",
    ],
  ]),
];
