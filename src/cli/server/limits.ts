/** From settings to the limits of the rooms. */
import type { Settings } from "../../config/index.js";
import type { RuntimeLimits } from "../../engine/runtime/index.js";
import type { HttpLimits } from "../../http/index.js";
import type { RetentionOptions } from "../../library/retention.js";

export function runtimeLimits({ limits, server, federation }: Settings): Partial<RuntimeLimits> {
  const { settings } = server;
  return {
    maxSteps: unlessZero(settings.taskMessageLimit),
    repetition: settings.repetitionLimit,
    taskTime: unlessZero(settings.taskTimeout),
    replyTime: unlessZero(federation.replyTimeout),
    turnTime: settings.turnTimeout,
    actionTime: settings.actionTimeout,
    speculation: settings.speculation,
    turns: limits.turns,
    turnsPerTask: limits.turnsPerTask,
    runningTasks: limits.runningTasks,
    runningTasksPerInstance: limits.runningTasksPerInstance,
    restingTasks: limits.restingTasks,
    mailbox: limits.mailbox,
    resultLength: limits.resultLength,
    followerBacklog: limits.streamBacklog,
  };
}

export function httpLimits({ limits, server }: Settings): Partial<HttpLimits> {
  return {
    body: server.bodyLimit,
    streamsPerCaller: limits.streamsPerCaller,
    failedAuthentications: limits.failedAuthPerMinute,
    requestsPerCaller: limits.requestsPerMinute,
    requestsPerAddress: limits.requestsPerMinutePerAddress,
  };
}

/** Decisions C5: everything is kept unless configured otherwise. */
export function retentionOf({ server }: Settings): RetentionOptions | undefined {
  const maxAge = unlessZero(server.settings.retentionTime);
  const maxTasks = unlessZero(server.settings.retentionCount);
  if (maxAge === undefined && maxTasks === undefined) return undefined;
  return { ...(maxAge !== undefined && { maxAge }), ...(maxTasks !== undefined && { maxTasks }) };
}

/** 0 is how a number says "no limit". */
function unlessZero(value: number): number | undefined {
  return value === 0 ? undefined : value;
}
