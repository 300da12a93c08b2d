/** The time and the ids of decisions. */

import type { Clock } from "../../base/index.js";
import type { DecisionContext } from "../task/commands.js";

/** Most decisions share their millisecond with others, and formatting one costs as much as deciding. */
export function decisionContexts(clock: Clock, id: () => string): () => DecisionContext {
  let latest: DecisionContext = { at: -1, timestamp: "", id };
  return () => {
    const at = clock.now();
    if (at !== latest.at) latest = { at, timestamp: new Date(at).toISOString(), id };
    return latest;
  };
}
