/** Other swarms at the door: their mail, and mail of our people to them. */
import type { Federation } from "../../federation/index.js";
import { parseAgentAddress } from "../../mail/address.js";
import { buildResponse } from "../../mail/build.js";
import { acceptInterswarmMessage, acceptMailMessage } from "../../mail/compat.js";
import type { Checked } from "../../mail/errors.js";
import type { MAILInterswarmMessage } from "../../mail/message.js";
import { isRecord } from "../../mail/record.js";
import { waitFor } from "../answers.js";
import type { Door } from "../door.js";
import { HttpError } from "../errors.js";
import { whenGone } from "../gone.js";
import { sendToSwarms } from "../interswarm-message.js";
import {
  type Access,
  type Answer,
  type Caller,
  defineRoute,
  type Handled,
  NOTHING,
  OUR_PEERS,
  PEERS,
  PERSONS,
  type RawCall,
  type Route,
} from "../route.js";
import { EventPage, EventQuery, TaskPath } from "../schemas/common.js";
import {
  InterswarmMessageAnswer,
  InterswarmMessageRequest,
  InterswarmReceipt,
  OldResponseAnswer,
  WrapperRequest,
} from "../schemas/interswarm.js";
import { eventPage, streamEvents, wantsStream } from "../task-events.js";

/** Who a caller of `/interswarm/message` may be depends on what it sends (mail.md 5.6). */
const ANYBODY: Access = { kind: "roles", roles: ["user", "admin", "agent"], wrongRole: "invalid_role" };

export function interswarmRoutes(door: Door): Route[] {
  const { federation } = door.options;
  if (federation === undefined) return [];
  return [
    receiving(door, federation, "forward", "Takes a message for a task that may be new here"),
    receiving(door, federation, "back", "Takes a message for a task that is known here"),
    defineRoute({
      ...NOTHING,
      id: "sendInterswarmMessage",
      method: "POST",
      path: "/interswarm/message",
      tag: "messages",
      summary: "Send a message to agents of other swarms",
      description:
        "Opens a task of the caller (or goes on with one), sends the message to each target, and answers with what they " +
        "say. With `Accept: text/event-stream` the events of it. Another swarm that posts a bare wrapper here gets the " +
        "finishing message, as in the oldest form of the protocol.",
      access: ANYBODY,
      body: InterswarmMessageRequest,
      idempotent: true,
      answers: {
        200: {
          description: "What they said.",
          schema: InterswarmMessageAnswer,
          contentType: "text/event-stream",
        },
        202: { description: "Nobody has answered in time.", schema: InterswarmMessageAnswer },
      },
      errors: ["unknown_swarm", "unknown_agent", "overloaded"],
      async handle(call, caller) {
        const isWrapper = isRecord(call.body) && "payload" in call.body && "source_swarm" in call.body;
        const isPeer = caller.principal.role === "agent";
        if (isWrapper !== isPeer) throw new HttpError("invalid_role", "invalid role");
        if (isWrapper) return oldForward(door, federation, caller, call.reply, call.body);
        return sendToSwarms(door, federation, call, caller, call.body);
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "sendInterswarmMessageOld",
      method: "POST",
      path: "/interswarm/send",
      tag: "messages",
      summary: "Older name of POST /interswarm/message",
      access: PERSONS,
      body: InterswarmMessageRequest,
      idempotent: true,
      answers: { 200: { description: "What they said.", schema: InterswarmMessageAnswer } },
      errors: ["unknown_swarm", "unknown_agent", "overloaded"],
      handle: (call, caller) => sendToSwarms(door, federation, call, caller, call.body),
    }),
    defineRoute({
      ...NOTHING,
      id: "receiveInterswarmResponseOld",
      method: "POST",
      path: "/interswarm/response",
      tag: "swarms",
      summary: "Older form of POST /interswarm/back: a message without its wrapper",
      access: PEERS,
      body: WrapperRequest,
      answers: { 200: { description: "Whether anybody waited for it.", schema: OldResponseAnswer } },
      errors: ["bad_wrapper", "peer_mismatch", "store_busy", "store_failed", "closed"],
      handle: (call, caller) => oldResponse(door, federation, caller, call.body),
    }),
    defineRoute({
      ...NOTHING,
      id: "getInterswarmTaskEvents",
      method: "GET",
      path: "/interswarm/tasks/{task_id}/events",
      tag: "swarms",
      summary: "What happens here in a task that the calling swarm owns or works on",
      access: OUR_PEERS,
      params: TaskPath,
      query: EventQuery,
      answers: {
        200: { description: "Events in order.", schema: EventPage, contentType: "text/event-stream" },
      },
      errors: ["unknown_task", "overloaded"],
      async handle({ params, query, request, reply }, caller) {
        const peer = federation.inbound.peerOf(caller.principal.id);
        const key = await federation.watchable(peer, params.task_id);
        const row = key === undefined ? undefined : await door.mailroom.store.tasks.byKey(key);
        if (row === undefined) throw new HttpError("unknown_task", `there is no task '${params.task_id}'`);
        request.taskKey = row.key;
        const task = await door.mailroom.instance(row.instance).requireTask(row.taskId);
        const wanted = { task, query, request };
        return wantsStream(request) ? streamEvents(door, reply, caller, wanted) : eventPage(door, wanted);
      },
    }),
  ];
}

function receiving(door: Door, federation: Federation, way: "forward" | "back", summary: string): Route {
  return defineRoute({
    ...NOTHING,
    id: way === "forward" ? "forwardInterswarm" : "backInterswarm",
    method: "POST",
    path: `/interswarm/${way}`,
    tag: "swarms",
    summary,
    description: "A message that came before is acknowledged again and has no effect.",
    access: PEERS,
    body: WrapperRequest,
    answers: { 200: { description: "The message is durable here.", schema: InterswarmReceipt } },
    errors: [
      "bad_wrapper",
      "wrong_swarm",
      "too_many_hops",
      "peer_mismatch",
      "bad_signature",
      "unknown_recipient",
      "unknown_task",
      "owner_mismatch",
      "too_many_requests",
      "mailbox_full",
      "overloaded",
      "store_busy",
      "store_failed",
      "closed",
    ],
    async handle({ body }, caller) {
      const wrapper = accepted(acceptInterswarmMessage(body, strict(door)));
      const { receipt } = await federation.inbound.receive(caller.principal.id, wrapper);
      return { status: 200, body: receipt };
    },
  });
}

/** mail.md 7.8: forward, and wait for the end of the task here. */
async function oldForward(
  door: Door,
  federation: Federation,
  caller: Caller,
  { raw }: RawCall["reply"],
  body: unknown,
): Promise<Handled> {
  const wrapper = accepted(acceptInterswarmMessage(body, { ...strict(door), deriveOwner: true }));
  const leave = door.waits.take(caller.name);
  try {
    const { receipt, at } = await federation.inbound.receive(caller.principal.id, wrapper);
    if (at === undefined) return { status: 200, body: receipt };
    const outcome = await waitFor(door.mailroom.runtime.outcomeOf(at), {
      clock: door.clock,
      ms: (door.options.defaultTimeout ?? 3600) * 1000,
      giveUpWhen: [(giveUp) => door.closing.listen(giveUp), (giveUp) => whenGone(raw, giveUp)],
    });
    if (outcome === undefined) return { status: 202, body: receipt };
    return finishMessage(door, wrapper, outcome.message.message.body, outcome.message.id);
  } finally {
    leave();
  }
}

function finishMessage(door: Door, wrapper: MAILInterswarmMessage, body: string, id: string): Answer {
  const { payload, source_swarm } = wrapper;
  const local = door.mailroom.swarm.name;
  const message = buildResponse({
    id,
    timestamp: new Date(door.clock.now()).toISOString(),
    taskId: payload.task_id,
    requestId: "request_id" in payload ? payload.request_id : wrapper.message_id,
    sender: { address_type: "agent", address: `${door.mailroom.swarm.entrypoint}@${local}` },
    recipient: payload.sender,
    subject: "::task_complete::",
    body,
    senderSwarm: local,
    recipientSwarm: source_swarm,
  });
  return { status: 200, body: message };
}

async function oldResponse(
  door: Door,
  federation: Federation,
  caller: Caller,
  body: unknown,
): Promise<Answer> {
  const peer = federation.inbound.peerOf(caller.principal.id);
  const message = accepted(acceptMailMessage(body, { ...strict(door), localSwarm: peer }));
  const { task_id } = message.message;
  if (message.msg_type === "broadcast_complete") {
    throw new HttpError("bad_wrapper", "a completion crosses swarms as a response");
  }
  const task = await federation.ownership(peer, task_id);
  if (task === undefined) return { status: 200, body: { status: "no_mail_instance", task_id } };
  const wrapper = accepted(
    acceptInterswarmMessage({
      message_id: message.id,
      source_swarm: peer,
      target_swarm: door.mailroom.swarm.name,
      timestamp: message.timestamp,
      payload: qualified(message.message, peer),
      msg_type: message.msg_type,
      task_owner: task.owner,
      task_contributors: task.contributors,
      metadata: {},
    }),
  );
  await federation.inbound.receive(caller.principal.id, wrapper);
  return { status: 200, body: { status: "response_processed", task_id } };
}

/** In this form the sender's swarm went without saying. */
function qualified<T extends { sender: { address_type: string; address: string } }>(
  payload: T,
  peer: string,
): T {
  const { sender } = payload;
  if (parseAgentAddress(sender.address).swarm !== undefined) return payload;
  return { ...payload, sender: { ...sender, address: `${sender.address}@${peer}` } };
}

function strict({ options }: Door): { strictIds?: boolean } {
  return options.strictIds === true ? { strictIds: true } : {};
}

function accepted<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  const [first] = checked.errors;
  const detail =
    first === undefined ? "the message is not valid" : `${first.path || "the message"} ${first.message}`;
  throw new HttpError("bad_wrapper", detail, { details: { errors: checked.errors } });
}
