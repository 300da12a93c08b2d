/** Rules of conversations that an operator can choose. */
import {
  boolean,
  choice,
  choiceKind,
  defineSettings,
  duration,
  integer,
  type SettingValues,
  setting,
} from "../base/index.js";

export const conversationSettings = defineSettings({
  joining: setting("map.joining", choiceKind(["open", "invite"]), {
    defaultText: "`invite`; `open` with `--dev`",
    doc: "Who can join a conversation that sets no `metadata.joinPolicy`: anyone, or only participants who were invited or addressed in it.",
  }),
  historyOnJoin: choice("map.history_on_join", ["none", "from-join", "full"], {
    default: "full",
    doc: "History that participants who join without an invitation can read.",
  }),
  closing: choice("map.closing", ["leaders", "members"], {
    default: "leaders",
    doc: "Who can close a conversation: its initiator and moderators, or every member.",
  }),
  maxThreadDepth: integer("map.thread_depth", {
    default: 10,
    doc: "Nesting depth of threads; a thread outside any other has depth 1.",
  }),
  archiveAfter: duration("map.archive_after", {
    default: 0,
    doc: "Closed conversations are archived after this time; 0 means never.",
  }),
  deleteAfter: duration("map.delete_after", {
    default: 0,
    doc: "Conversations are deleted with their turns this long after they were closed or archived; 0 means never.",
  }),
  // Replies of agents that are not members would not be recorded [MAP-LEVL-02].
  autoEnroll: boolean("map.auto_enroll", {
    default: true,
    doc: "Make agents members of a conversation when a member with `canInvite` writes to them.",
  }),
});

export type ConversationRules = SettingValues<typeof conversationSettings>;
