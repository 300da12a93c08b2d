import type { ActionContext } from "../engine/index.js";

/**
 * The context of an action call, for tests that call an action without a runtime.
 *
 * @param overrides Replace single fields.
 * @example
 * await action.run({ city: "Paris" }, actionContext({ params: { units: "metric" } }));
 */
export function actionContext(overrides: Partial<ActionContext> = {}): ActionContext {
  return {
    swarm: "test",
    agent: "me",
    task: { id: "task", key: "key", owner: "user:ann@test", contributors: [], entrypoint: "me" },
    instance: { role: "user", id: "ann" },
    callId: "call-1",
    idempotencyKey: "key/2/0",
    attempt: 1,
    params: {},
    signal: new AbortController().signal,
    ...overrides,
  };
}
