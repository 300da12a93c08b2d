/** All conversations of a server. Knows nothing of connections. */
import type { Interception } from "../domain/decide-turns.js";
import { DEFAULT_RULES, type DomainRules } from "../domain/moment.js";
import type {
  CloseParams,
  CreateParams,
  GetParams,
  InviteParams,
  JoinParams,
  LeaveParams,
  ListParams,
  ReplayParams,
  SummaryParams,
  ThreadCreateParams,
  ThreadListParams,
  TurnParams,
  TurnsListParams,
} from "../domain/params.js";
import { extractiveSummariser, type Summariser } from "../domain/summary.js";
import type { Caller, ConversationStatus, TurnStatus } from "../domain/types.js";
import type { ConversationIndex } from "../ports.js";
import type { Book } from "./book.js";
import { ConversationReader } from "./reader.js";
import { Shelf, type ShelfParts } from "./shelf.js";
import { Summaries } from "./summaries.js";
import { ConversationWriter, type WriterParts } from "./writer.js";

export interface ConversationsParts extends ShelfParts, Pick<WriterParts, "isElsewhere"> {
  readonly index: ConversationIndex;
  readonly rules?: Partial<DomainRules>;
  readonly summariser?: Summariser;
}

export class Conversations implements Book {
  readonly #shelf: Shelf;
  readonly #writer: ConversationWriter;
  readonly #reader: ConversationReader;
  readonly #summaries: Summaries;

  constructor(parts: ConversationsParts) {
    const { index, rules, summariser = extractiveSummariser, isElsewhere } = parts;
    this.#shelf = new Shelf(parts);
    this.#reader = new ConversationReader(this.#shelf, index);
    this.#summaries = new Summaries(this.#shelf, summariser);
    this.#writer = new ConversationWriter({
      shelf: this.#shelf,
      summaries: this.#summaries,
      rules: { ...DEFAULT_RULES, ...rules },
      ...(isElsewhere !== undefined && { isElsewhere }),
    });
  }

  create(caller: Caller, params: CreateParams) {
    return this.#writer.create(caller, params);
  }
  close(caller: Caller, params: CloseParams) {
    return this.#writer.close(caller, params);
  }
  join(caller: Caller, params: JoinParams) {
    return this.#writer.join(caller, params);
  }
  leave(caller: Caller, params: LeaveParams) {
    return this.#writer.leave(caller, params);
  }
  invite(caller: Caller, params: InviteParams) {
    return this.#writer.invite(caller, params);
  }
  turn(caller: Caller, params: TurnParams) {
    return this.#writer.turn(caller, params);
  }
  intercept(caller: Caller, conversationId: string, message: Interception) {
    return this.#writer.intercept(caller, conversationId, message);
  }
  createThread(caller: Caller, params: ThreadCreateParams) {
    return this.#writer.createThread(caller, params);
  }
  setStatus(id: string, status: ConversationStatus) {
    return this.#writer.setStatus(id, status);
  }
  setTurnStatus(id: string, turnId: string, status: TurnStatus) {
    return this.#writer.setTurnStatus(id, turnId, status);
  }

  get(caller: Caller, params: GetParams) {
    return this.#reader.get(caller, params);
  }
  list(caller: Caller, params: ListParams) {
    return this.#reader.list(caller, params);
  }
  listTurns(caller: Caller, params: TurnsListParams) {
    return this.#reader.listTurns(caller, params);
  }
  replay(caller: Caller, params: ReplayParams) {
    return this.#reader.replay(caller, params);
  }
  listThreads(caller: Caller, params: ThreadListParams) {
    return this.#reader.listThreads(caller, params);
  }
  summary(caller: Caller, params: SummaryParams) {
    return this.#summaries.summary(caller, params);
  }

  /** Whether the id is known, without asking the store, to be that of a conversation here. */
  isLoaded(id: string): boolean {
    return this.#shelf.isLoaded(id);
  }

  /** In memory now; for those who watch the process. */
  get loaded(): number {
    return this.#shelf.loaded;
  }
}
