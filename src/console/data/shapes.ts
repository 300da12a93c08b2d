/** The shapes of the server's answers. */
import type { TokenData } from "../../base/index.js";
import type { JournalEntry } from "../model/journal-entry.js";

export type Status = "running" | "paused" | "completed" | "failed" | "cancelled";

export interface TaskSummary {
  readonly task_id: string;
  readonly key?: string | undefined;
  readonly task_owner: string;
  readonly status: Status;
  readonly title?: string | null | undefined;
  readonly start_time: string;
  readonly updated_time?: string | undefined;
}

export interface JournalPage {
  readonly task_id: string;
  readonly key: string;
  readonly task_owner: string;
  readonly status: Status;
  readonly title: string | null;
  readonly number: number;
  readonly cursor: string;
  readonly entries: readonly JournalEntry[];
  readonly more: boolean;
}

export interface TaskCounts {
  readonly running: number;
  readonly paused: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

export interface OpenCall {
  readonly arguments: string;
  readonly call_id: string;
  readonly name: string;
  readonly agent: string;
}

export const LANE_FAILED = 1;
export const LANE_OPEN = 2;
export const LANE_PAUSED = 4;

export interface TaskDigest {
  readonly task_id: string;
  readonly key: string;
  readonly number: number;
  readonly messages: number;
  readonly turns: number;
  readonly failed_turns: number;
  readonly actions: number;
  readonly failed_actions: number;
  readonly steps: number;
  readonly max_steps: number | null;
  readonly tokens: { readonly input: number; readonly output: number; readonly cached: number };
  readonly cost: number | null;
  readonly waited_ms: number;
  readonly agents: readonly string[];
  readonly lanes: readonly (readonly [number, number, number, number])[];
  readonly open: readonly OpenCall[];
  readonly held: { readonly reason: string; readonly agent: string; readonly message: string } | null;
  readonly answerers: readonly string[];
  readonly partial?: boolean | undefined;
}

export interface FeedTask extends TaskSummary {
  readonly key: string;
  readonly number: number;
  readonly at: number;
  readonly kinds: readonly string[];
  readonly doing: readonly string[];
}

export interface Hello {
  readonly cursor: string;
  readonly version: string;
  readonly started_at: number;
  readonly swarm: string;
  readonly definition: string;
  readonly caller: { readonly role: string; readonly id: string };
  readonly dev: boolean;
}

export interface FeedEvents {
  readonly hello: Hello;
  readonly task: FeedTask;
  readonly entries: {
    readonly key: string;
    readonly first: number;
    readonly entries: readonly JournalEntry[];
  };
  readonly token: TokenData & { readonly key: string };
  readonly counts: TaskCounts;
  readonly stats: { readonly row: readonly (number | null)[] };
  readonly swarm: { readonly name: string; readonly definition: string };
  readonly removed: { readonly key: string; readonly task_id: string };
  readonly reset: { readonly cursor: string };
  readonly ping: { readonly at: number };
}

export interface StatsPage {
  readonly step: "1s" | "1m";
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (number | null)[])[];
}

export interface AgentTraffic {
  readonly name: string;
  readonly turns: number;
  readonly failed: number;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly busy: number;
  readonly tokens: { readonly input: number; readonly output: number; readonly cached: number };
  readonly cost: number | null;
}

export interface TrafficEdge {
  readonly from: string;
  readonly to: string;
  readonly type: string;
  readonly messages: number;
  readonly failed: number;
}

export interface Traffic {
  readonly since: number;
  readonly until: number;
  readonly agents: readonly AgentTraffic[];
  readonly edges: readonly TrafficEdge[];
  readonly partial: boolean;
}

export interface Peer {
  readonly swarm_name: string;
  readonly base_url: string | null;
  readonly version?: string | null;
  readonly last_seen?: string | null;
  readonly is_active?: boolean;
  readonly latency?: number | null;
  readonly swarm_description?: string | null;
  readonly volatile?: boolean;
  readonly auth_state?: string;
  readonly failures?: number;
  readonly last_error?: string | null;
  readonly waiting?: number;
  readonly public_key?: string | null;
}

export interface OutboxItem {
  readonly number: number;
  readonly id: string;
  readonly queue: string;
  readonly target: string;
  readonly status: "waiting" | "delivered" | "refused" | "expired";
  readonly created_at: number;
  readonly due_at: number;
  readonly deadline_at: number | null;
  readonly attempts: number;
  readonly interrupted: boolean;
  readonly reason: string | null;
  readonly finished_at: number | null;
  readonly task_key: string | null;
  readonly message_id: string | null;
  readonly to: string | null;
  readonly subject: string | null;
}

export interface OutboxPage {
  readonly queues: readonly string[];
  readonly queue: string;
  readonly counts: {
    readonly waiting: number;
    readonly delivered: number;
    readonly refused: number;
    readonly expired: number;
  };
  readonly by_target: readonly { readonly target: string; readonly waiting: number }[];
  readonly items: readonly OutboxItem[];
  readonly next_after: number | null;
}

export interface TokenInfo {
  readonly token_id: string;
  readonly role: string;
  readonly id: string;
  readonly label: string | null;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
  readonly current: boolean;
}

export interface AgentDefinition {
  readonly name: string;
  readonly comm_targets: readonly string[];
  readonly enable_entrypoint: boolean;
  readonly enable_interswarm: boolean;
  readonly can_complete_tasks: boolean;
  readonly actions: readonly string[];
  readonly remote?: boolean;
  readonly mind?: string;
  readonly llm?: string | null;
}

export interface SwarmDump {
  readonly swarm_name: string;
  readonly swarm: {
    readonly name: string;
    readonly version: string;
    readonly description: string;
    readonly entrypoint: string;
    readonly breakpoint_tools: readonly string[];
    readonly agents: readonly AgentDefinition[];
  };
}
