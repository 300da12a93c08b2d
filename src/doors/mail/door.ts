/** What the routes of MAIL share. */
import type { Tokens } from "../../auth/index.js";
import type { Clock } from "../../base/index.js";
import type { ServerFacts, ServerState } from "../../extension/index.js";
import type { DefinitionInForce, Mailroom } from "../../library/index.js";
import type { FullStore } from "../../store/index.js";
import type { Cursors } from "./cursors.js";
import type { TaskDigests } from "./digest.js";
import type { FeedHub } from "./feed/hub.js";
import type { TaskSearch } from "./search.js";

export interface MailDoor {
  readonly mailroom: Mailroom;
  readonly definition: DefinitionInForce;
  readonly server: ServerFacts;
  readonly state: ServerState;
  readonly clock: Clock;
  readonly cursors: Cursors;
  readonly feed: FeedHub;
  readonly digests: TaskDigests;
  readonly outbox: FullStore["outbox"];
  /** Absent where the store cannot search. */
  readonly search: TaskSearch | undefined;
  /** Absent where the authenticator is not the server's own. */
  readonly tokens: Tokens | undefined;
}
