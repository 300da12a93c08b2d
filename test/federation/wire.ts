/** Wrappers as other implementations send them, and functions that post them. */
import { randomUUID } from "node:crypto";
import { call, type Reply } from "../http/harness.js";

export interface WrapperWish {
  readonly source?: string;
  readonly target?: string;
  readonly taskId?: string;
  readonly owner?: string;
  readonly contributors?: readonly string[];
  readonly type?: "request" | "response";
  readonly from?: string;
  readonly to?: string;
  readonly subject?: string;
  readonly body?: string;
  readonly requestId?: string;
  readonly messageId?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** In the reference's form: nulls, an offset timestamp, the token in the body (REF-11, REF-14). */
export function wrapperOf(wish: WrapperWish = {}) {
  const source = wish.source ?? "beta";
  const target = wish.target ?? "alpha";
  const owner = wish.owner ?? `user:bob@${source}`;
  return {
    message_id: wish.messageId ?? randomUUID(),
    source_swarm: source,
    target_swarm: target,
    timestamp: "2026-11-16T01:35:40.793001+00:00",
    payload: {
      task_id: wish.taskId ?? randomUUID(),
      request_id: wish.requestId ?? randomUUID(),
      sender: { address_type: "agent", address: wish.from ?? `supervisor@${source}` },
      recipient: { address_type: "agent", address: wish.to ?? `clerk@${target}` },
      subject: wish.subject ?? "Forecast",
      body: wish.body ?? "Tokyo?",
      sender_swarm: null,
      recipient_swarm: null,
      routing_info: {},
    },
    msg_type: wish.type ?? "request",
    auth_token: "whatever",
    task_owner: owner,
    task_contributors: wish.contributors ?? [owner],
    metadata: wish.metadata ?? {},
  };
}

/** Posts as the wrapper's source swarm, unless another token is given. */
export function deliver(
  url: string,
  way: "forward" | "back",
  wish: WrapperWish = {},
  token = `agent:${wish.source ?? "beta"}`,
): Promise<Reply> {
  return call(url, `/interswarm/${way}`, { token, json: { message: wrapperOf(wish) } });
}
