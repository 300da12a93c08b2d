/** Metrics and traces, derived from the journal and the bus: see README.md. */
export { Metrics } from "./metrics.js";
export { STATS_COLUMNS, Stats } from "./stats.js";
