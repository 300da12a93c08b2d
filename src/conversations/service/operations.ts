/** What can be asked about one conversation of either kind: a native one, or a task (decision F4). */
import type {
  CloseParams,
  GetParams,
  InviteParams,
  JoinParams,
  LeaveParams,
  ReplayParams,
  SummaryParams,
  ThreadCreateParams,
  ThreadListParams,
  TurnParams,
  TurnsListParams,
} from "../rules/params.js";
import type { ParticipantPage } from "../rules/queries.js";
import type { Actor } from "../rules/types.js";
import type { ReadableConversation } from "./search.js";

/** What `mail/presence`, read cursors and search need. */
type Details = Promise<Partial<ParticipantPage>>;

type Answer<Params> = (actor: Actor, params: Params) => Promise<object>;

export interface ConversationOperations {
  get(actor: Actor, params: GetParams): Details;
  /** The conversation for a reader of its history. */
  readable(actor: Actor, conversationId: string): Promise<ReadableConversation>;
  readonly close: Answer<CloseParams>;
  readonly join: Answer<JoinParams>;
  readonly leave: Answer<LeaveParams>;
  readonly invite: Answer<InviteParams>;
  readonly turn: Answer<TurnParams>;
  readonly listTurns: Answer<TurnsListParams>;
  readonly createThread: Answer<ThreadCreateParams>;
  readonly listThreads: Answer<ThreadListParams>;
  readonly summary: Answer<SummaryParams>;
  readonly replay: Answer<ReplayParams>;
}
