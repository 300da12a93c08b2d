/** Mail from another swarm. The sender chooses message ids. */
import { randomUUID } from "node:crypto";
import type { Runtime } from "../../src/engine/runtime/index.js";
import { buildRequest } from "../../src/mail/build.js";

/** A request with the given message id, which opens its own task for the agent. */
export function requestFrom(swarm: string, runtime: Runtime, { id, to }: { id: string; to: string }) {
  const taskId = randomUUID();
  const owner = `user:zoe@${swarm}`;
  const message = buildRequest({
    id,
    timestamp: new Date().toISOString(),
    taskId,
    sender: { address_type: "agent", address: `chief@${swarm}` },
    recipient: { address_type: "agent", address: to },
    subject: "work",
    body: `from ${swarm}`,
  });
  return runtime.receive({
    instance: { role: "swarm", id: swarm },
    taskId,
    owner,
    message,
    to: [to],
    adopts: true,
    resumes: true,
    contributors: [owner],
  });
}
