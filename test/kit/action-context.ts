import type { ActionContext } from "../../src/engine/agent.js";

/** What an action is told, for tests that call one without a runtime. */
export function contextFor(changes: Partial<ActionContext> = {}): ActionContext {
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
    ...changes,
  };
}
