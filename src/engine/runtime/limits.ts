import { DEFAULT_ENGINE_LIMITS, type EngineLimits } from "../rules.js";

/** Law 7: everything is bounded. All of it is configuration. */
export interface RuntimeLimits extends EngineLimits {
  /** Turns under way at once (decisions B2). */
  readonly turns: number;
  readonly turnsPerInstance: number;
  readonly turnsPerTask: number;
  /** Tasks that run at once; more are refused until some have ended. */
  readonly runningTasks: number;
  readonly runningTasksPerInstance: number;
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
  turns: 64,
  turnsPerInstance: 16,
  turnsPerTask: 8,
  runningTasks: 50_000,
  runningTasksPerInstance: 50_000,
  restingTasks: 256,
  turnTime: 600_000,
  actionTime: 300_000,
  resultLength: 1_000_000,
  snapshotAfter: 5_000,
  followerBacklog: 1_000,
};
