import { DEFAULT_ENGINE_LIMITS, type EngineLimits } from "../rules.js";

/** Everything is bounded. All of it is configuration. */
export interface RuntimeLimits extends EngineLimits {
  /** Turns under way at once. While others wait a caller may hold a quarter of them, alone all. */
  readonly turns: number;
  readonly turnsPerTask: number;
  /**
   * Tasks that run at once; more are refused until some have ended. While others were refused a caller may have a
   * quarter of them, alone all.
   */
  readonly runningTasks: number;
  /** Tasks of one caller that run at once, whoever else waits. */
  readonly runningTasksPerInstance: number;
  /** Whether agents that allow it start on mail that is decided and not yet durable. Effects always wait. */
  readonly speculation: boolean;
  /** Decisions of one task, and of the process, that may wait for the disk before turns wait for it, too. */
  readonly undurablePerTask: number;
  readonly undurable: number;
  /** Characters of a task's journal; a task that is larger fails. */
  readonly taskBytes: number;
  /** Commands that may wait for one task while its state is being read. */
  readonly waitingCommands: number;
  /** Tasks that rest in memory so that the next message finds them there. */
  readonly restingTasks: number;
  /** Milliseconds that an agent may take for one answer. */
  readonly turnTime: number;
  /** Milliseconds that an action may take unless it says otherwise. */
  readonly actionTime: number;
  /** Characters of an action's result that are kept. */
  readonly resultLength: number;
  /** Entries after which a long journal gets a snapshot (and again whenever it has doubled). */
  readonly snapshotAfter: number;
  /** Entries that wait in memory for a slow reader of a task's events before it reads the store instead. */
  readonly followerBacklog: number;
}

export const DEFAULT_RUNTIME_LIMITS: RuntimeLimits = {
  ...DEFAULT_ENGINE_LIMITS,
  turns: 1_024,
  turnsPerTask: 8,
  runningTasks: 50_000,
  runningTasksPerInstance: 50_000,
  speculation: true,
  undurablePerTask: 16,
  undurable: 384,
  taskBytes: 256 * 1024 * 1024,
  waitingCommands: 10_000,
  restingTasks: 256,
  turnTime: 600_000,
  actionTime: 300_000,
  resultLength: 1_000_000,
  snapshotAfter: 5_000,
  followerBacklog: 1_000,
};
