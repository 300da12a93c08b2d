/** The base module: mechanisms that every other module uses. Runs in browsers. */
export * from "./circuit-breaker.js";
export * from "./close-stack.js";
export * from "./error-table.js";
export * from "./errors.js";
export * from "./hosts.js";
export * from "./ids.js";
export * from "./json.js";
export * from "./once.js";
export * from "./problem.js";
export * from "./rate-limiter.js";
export * from "./retry.js";
export * from "./semaphore.js";
export * from "./setting-kinds.js";
export * from "./settings.js";
export * from "./suggest.js";
export * from "./time.js";
export * from "./written-texts.js";
