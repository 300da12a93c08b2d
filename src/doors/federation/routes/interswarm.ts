/** Mail from other swarms, and users' mail to them. */
import { isRecord, MailroomError } from "../../../base/index.js";
import {
  type Access,
  type Caller,
  defineRoute,
  EventPage,
  EventQuery,
  MAIL_SWARMS,
  MAIL_USERS,
  NO_INPUT,
  type Route,
  type RouteRequest,
  type RouteResponse,
  SWARMS,
  TaskPath,
} from "../../../extension/index.js";
import type { Checked, MAILInterswarmMessage } from "../../../mail/index.js";
import {
  acceptInterswarmMessage,
  acceptMailMessage,
  buildResponse,
  parseAgentAddress,
} from "../../../mail/index.js";
import type { ActiveFederationDoor } from "../door.js";
import { sendToSwarms } from "../interswarm-message.js";
import {
  InterswarmMessageAnswer,
  InterswarmMessageRequest,
  InterswarmReceipt,
  InterswarmTask,
  OldResponseAnswer,
  WrapperRequest,
} from "../schemas.js";

/** Which roles may call `/interswarm/message` depends on the shape of the body (REF-9). */
const ANY_ROLE: Access = { kind: "roles", roles: ["user", "admin", "agent"], wrongRole: "invalid_role" };

export function interswarmRoutes(door: ActiveFederationDoor): Route[] {
  const { federation } = door;
  return [
    receiving(door, "forward", "Receive a message for a task that may be new"),
    receiving(door, "back", "Receive a message for a known task"),
    defineRoute({
      ...NO_INPUT,
      id: "sendInterswarmMessage",
      method: "POST",
      path: "/interswarm/message",
      tag: "messages",
      summary: "Send a message to agents of other swarms",
      description:
        "Opens a task of the caller (or continues one), sends the message to each target, and answers with what they " +
        "say. With `Accept: text/event-stream` the events of it. Another swarm that posts a bare wrapper here gets the " +
        "finishing message, as in the oldest form of the protocol.",
      access: ANY_ROLE,
      body: InterswarmMessageRequest,
      idempotent: true,
      answers: {
        200: {
          description: "Their answers.",
          schema: InterswarmMessageAnswer,
          contentType: "text/event-stream",
        },
        202: { description: "No answer arrived in time.", schema: InterswarmMessageAnswer },
      },
      errors: ["unknown_swarm", "unknown_agent", "overloaded"],
      async handle({ body, request }, caller) {
        const isWrapper = isRecord(body) && "payload" in body && "source_swarm" in body;
        const isPeer = caller.principal.role === "agent";
        if (isWrapper !== isPeer) throw new MailroomError("invalid_role", "invalid role");
        if (isWrapper) return oldForward(door, request, caller, body);
        return sendToSwarms(door, request, caller, body);
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "sendInterswarmMessageOld",
      method: "POST",
      path: "/interswarm/send",
      tag: "messages",
      summary: "Older name of POST /interswarm/message",
      access: MAIL_USERS,
      body: InterswarmMessageRequest,
      idempotent: true,
      answers: { 200: { description: "Their answers.", schema: InterswarmMessageAnswer } },
      errors: ["unknown_swarm", "unknown_agent", "overloaded"],
      handle: ({ body, request }, caller) => sendToSwarms(door, request, caller, body),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "receiveInterswarmResponseOld",
      method: "POST",
      path: "/interswarm/response",
      tag: "swarms",
      summary: "Older form of POST /interswarm/back: a message without its wrapper",
      access: MAIL_SWARMS,
      body: WrapperRequest,
      answers: { 200: { description: "Whether a caller was waiting for it.", schema: OldResponseAnswer } },
      errors: ["bad_wrapper", "peer_mismatch", "store_busy", "store_failed", "closed"],
      handle: ({ body }, caller) => oldResponse(door, caller, body),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getInterswarmTask",
      method: "GET",
      path: "/interswarm/tasks/{task_id}",
      tag: "swarms",
      summary: "Show whether this swarm still works on a task of the calling swarm",
      access: SWARMS,
      params: TaskPath,
      answers: { 200: { description: "The status of the task on this server.", schema: InterswarmTask } },
      errors: ["unknown_task"],
      async handle({ params: { task_id } }, caller) {
        const peer = federation.inbound.peerOf(caller.principal.id);
        const standing = await federation.standing(peer, task_id);
        if (standing === undefined) throw new MailroomError("unknown_task", `unknown task '${task_id}'`);
        return { status: 200, body: { task_id, ...standing } };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getInterswarmTaskEvents",
      method: "GET",
      path: "/interswarm/tasks/{task_id}/events",
      tag: "swarms",
      summary: "Stream the events of a task that the calling swarm owns or works on",
      access: SWARMS,
      params: TaskPath,
      query: EventQuery,
      answers: {
        200: { description: "Events in order.", schema: EventPage, contentType: "text/event-stream" },
      },
      errors: ["unknown_task", "overloaded"],
      async handle({ params, query, request }, caller) {
        const peer = federation.inbound.peerOf(caller.principal.id);
        const key = await federation.watchable(peer, params.task_id);
        const row = key === undefined ? undefined : await door.mailroom.store.tasks.byKey(key);
        if (row === undefined) throw new MailroomError("unknown_task", `unknown task '${params.task_id}'`);
        request.taskKey = row.key;
        const task = await door.mailroom.instance(row.instance).requireTask(row.taskId);
        return request.taskEvents(caller, task, query);
      },
    }),
  ];
}

function receiving(door: ActiveFederationDoor, way: "forward" | "back", summary: string): Route {
  return defineRoute({
    ...NO_INPUT,
    id: way === "forward" ? "forwardInterswarm" : "backInterswarm",
    method: "POST",
    path: `/interswarm/${way}`,
    tag: "swarms",
    summary,
    description: "A message that was received before is acknowledged again and has no effect.",
    access: MAIL_SWARMS,
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
      const { receipt } = await door.federation.inbound.receive(
        caller.principal.id,
        wrapper,
        sentWrapper(body),
      );
      return { status: 200, body: receipt };
    },
  });
}

/** The oldest form: forward, then wait for the end of the task here (REF-10). */
function oldForward(
  door: ActiveFederationDoor,
  request: RouteRequest,
  caller: Caller,
  body: unknown,
): Promise<RouteResponse> {
  const { federation, mailroom } = door;
  const wrapper = accepted(acceptInterswarmMessage(body, { ...strict(door), deriveOwner: true }));
  return request.waiting(caller, async (wait) => {
    const { receipt, at } = await federation.inbound.receive(caller.principal.id, wrapper, sentWrapper(body));
    if (at === undefined) return { status: 200, body: receipt };
    const outcome = await wait(mailroom.runtime.outcomeOf(at));
    if (outcome === undefined) return { status: 202, body: receipt };
    return finishMessage(door, wrapper, outcome.message.message.body, outcome.message.id);
  });
}

function finishMessage(
  door: ActiveFederationDoor,
  wrapper: MAILInterswarmMessage,
  body: string,
  id: string,
): RouteResponse {
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
  door: ActiveFederationDoor,
  caller: Caller,
  body: unknown,
): Promise<RouteResponse> {
  const { federation } = door;
  const peer = federation.inbound.peerOf(caller.principal.id);
  const message = accepted(acceptMailMessage(body, { ...strict(door), localSwarm: peer }));
  const { task_id } = message.message;
  if (message.msg_type === "broadcast_complete") {
    throw new MailroomError("bad_wrapper", "a completion crosses swarms as a response");
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

/** The wrapper as it was sent, under `message` or bare. */
function sentWrapper(body: unknown): Readonly<Record<string, unknown>> | undefined {
  const { message } = isRecord(body) && !("payload" in body) ? body : { message: body };
  return isRecord(message) ? message : undefined;
}

function strict({ server }: ActiveFederationDoor): { strictIds?: boolean } {
  return server.strictIds ? { strictIds: true } : {};
}

function accepted<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  const [first] = checked.errors;
  const detail =
    first === undefined ? "the message is not valid" : `${first.path || "the message"} ${first.message}`;
  throw new MailroomError("bad_wrapper", detail, { details: { errors: checked.errors } });
}
