import type { BackoffPolicy } from "../../net/index.js";

/** Between tries of what cannot be done now: no room for a task, or a store in trouble. */
export const PAUSES: BackoffPolicy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0.25 };
