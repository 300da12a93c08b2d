/** The shapes of the server's answers: those of the typed client, and what the client leaves open. */
import type { FeedEvent, RemoteSwarm, TaskStatus, WaitingCall } from "../../client/index.js";

export type {
  Approval,
  Conversation,
  ConversationTurn,
  FeedTask,
  JournalPage,
  MeshOverview,
  OutboxItem,
  OutboxPage,
  Participant,
  StatsPage,
  TaskCounts,
  TaskDigest,
  TaskSummary,
  TokenInfo,
  Traffic,
} from "../../client/index.js";

export type Status = TaskStatus;
export type OpenCall = WaitingCall;
export type Peer = RemoteSwarm;

/** The data of the feed's events, by name. */
export type FeedEvents = {
  readonly [Event in FeedEvent as Event["event"]]: Event["data"];
};
export type Hello = FeedEvents["hello"];

/** Flags of a block in `TaskDigest.lanes`. */
export const LANE_FAILED = 1;
export const LANE_OPEN = 2;
export const LANE_PAUSED = 4;

interface AgentData {
  readonly name: string;
  readonly comm_targets: readonly string[];
  readonly enable_entrypoint: boolean;
  readonly enable_interswarm: boolean;
  readonly can_complete_tasks: boolean;
  readonly actions: readonly string[];
  readonly mind: string;
  readonly llm?: string;
}

/** Response of `GET /swarms/dump`. The client gives it as it is. */
export interface SwarmDump {
  readonly swarm_name: string;
  readonly limits: Readonly<Record<string, number>>;
  readonly swarm: {
    readonly name: string;
    readonly version: string;
    readonly description: string;
    readonly entrypoint: string;
    readonly breakpoint_tools: readonly string[];
    readonly agents: readonly AgentData[];
  };
}
