/** What method handlers use. The parts do not import this file, so none depends on all the others. */

import type { Clock, Ids } from "../../base/index.js";
import type {
  ConversationService,
  EventLog,
  ReadCursors,
  TaskConversations,
} from "../../conversations/index.js";
import type { Access } from "./access.js";
import type { ConnectedAgents } from "./connected-agents.js";
import type { Lifecycle } from "./lifecycle.js";
import type { MessageRouter } from "./message-router.js";
import type { Observers } from "./observers.js";
import type { Registrations } from "./registrations.js";
import type { RemoteAgents } from "./remote-agents/remote-agents.js";
import type { Sessions } from "./sessions.js";
import type { MapLimits } from "./settings.js";
import type { Subscriptions } from "./subscriptions.js";

export interface MapContext {
  readonly limits: MapLimits;
  readonly clock: Clock;
  readonly ids: Ids;
  /** For failures that no caller is waiting for. */
  readonly report: (error: unknown) => void;
  readonly systemInfo: { readonly name: string; readonly version: string };
  readonly access: Access;
  readonly agents: ConnectedAgents;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly messages: MessageRouter;
  readonly lifecycle: Lifecycle;
  readonly log: EventLog;
  readonly subscriptions: Subscriptions;
  readonly observers: Observers;
  readonly readCursors: ReadCursors;
  /** Absent when mail is switched off. */
  readonly conversations: ConversationService | undefined;
  /** Absent without a swarm, or when mail is switched off. */
  readonly tasks: TaskConversations | undefined;
  /** Absent without a swarm. */
  readonly remoteAgents: RemoteAgents | undefined;
}
