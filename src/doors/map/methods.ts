/** The table of methods. A `Map`, so that inherited properties of objects cannot be called. */
import type { MethodHandler, MethodTable } from "./method-call.js";
import { agentMethods } from "./methods/agents.js";
import { connectMethods } from "./methods/connect.js";
import { eventMethods } from "./methods/events.js";
import { mailMethods } from "./methods/mail.js";
import { mailAdditions } from "./methods/mail-additions.js";
import { remoteAgentMethods } from "./methods/remote-agents.js";
import { scopeMethods } from "./methods/scopes.js";
import { sendMethods } from "./methods/send.js";

export interface MethodOptions {
  /** Whether there is a swarm whose remote agents are served. */
  readonly remoteAgents: boolean;
  /** Methods beyond the protocol's. */
  readonly extensions?: MethodTable | undefined;
}

export function methodTable({ remoteAgents, extensions }: MethodOptions): ReadonlyMap<string, MethodHandler> {
  return new Map(
    Object.entries({
      ...connectMethods,
      ...agentMethods,
      ...scopeMethods,
      ...sendMethods,
      ...eventMethods,
      ...mailMethods,
      ...mailAdditions,
      ...(remoteAgents && remoteAgentMethods),
      ...extensions,
    }),
  );
}
