/** What can be asked about one conversation, of whichever kind it is: one of its own, or a task (decisions F4). */
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
} from "../domain/params.js";
import type { Caller } from "../domain/types.js";

type Answer<Params> = (caller: Caller, params: Params) => Promise<object>;

export interface Book {
  readonly get: Answer<GetParams>;
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
