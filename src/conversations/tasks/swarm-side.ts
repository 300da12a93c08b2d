/** What MAP asks of the engine that runs beside it. */
import { ALL_TASKS_CHANNEL, type Runtime } from "../../engine/runtime/index.js";
import type { EventLog } from "../log/event-log.js";

export type SwarmSide = Pick<Runtime, "post" | "cancel" | "rules" | "remote" | "bus">;

/** Tells the log of every commit of a task. However many come at once, the log is asked to look once more. */
export function wakeWith({ bus }: SwarmSide, log: EventLog, report: (error: unknown) => void): () => void {
  let waking = false;
  let again = false;
  const wake = async (): Promise<void> => {
    if (waking) {
      again = true;
      return;
    }
    waking = true;
    try {
      do {
        again = false;
        await log.wake();
      } while (again);
    } catch (error) {
      report(error);
    } finally {
      waking = false;
    }
  };
  return bus.subscribe(ALL_TASKS_CHANNEL, () => void wake());
}
