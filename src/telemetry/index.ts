/** Metrics and traces, derived from the journal and the bus: see README.md. */
export { type Figures, Metrics } from "./metrics.js";
export { STATS_COLUMNS, Stats, type StatsGauges, type StatsRow } from "./stats.js";
