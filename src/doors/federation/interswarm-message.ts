/** A user's message to agents of other swarms (REF-9): a task of the user that other swarms work on. */
import { MailroomError, unknownField } from "../../base/index.js";
import {
  type Caller,
  eventsUrl,
  type RoundEnd,
  type RouteRequest,
  type RouteResponse,
  type RouteResult,
} from "../../extension/index.js";
import { parseAgentAddress } from "../../mail/index.js";
import type { ActiveFederationDoor } from "./door.js";
import { InterswarmMessageRequest } from "./schemas.js";

const DEFAULT_SUBJECT = "Interswarm Message";

interface Wanted {
  readonly body: string;
  readonly targets: readonly string[];
  readonly type: "request" | "broadcast";
}

export async function sendToSwarms(
  door: ActiveFederationDoor,
  request: RouteRequest,
  caller: Caller,
  given: InterswarmMessageRequest,
): Promise<RouteResult> {
  checkFields(given);
  const wanted = readWanted(given);
  checkTargets(door, wanted.targets);
  const { stream, ignore_stream_pings } = given;
  const routingInfo = {
    ...given.routing_info,
    ...(stream !== undefined && { stream }),
    ...(ignore_stream_pings !== undefined && { ignore_stream_pings }),
  };
  return request.round(
    caller,
    {
      waiting: {
        stream: request.headers.accept?.toLowerCase().includes("text/event-stream") === true,
        showEvents: stream === true,
        timeout: given.timeout,
      },
      post: (rows) =>
        door.mailroom.runtime.post(caller.instance, {
          ...wanted,
          subject: given.subject ?? DEFAULT_SUBJECT,
          ...(given.task_id !== undefined && { taskId: given.task_id }),
          ...(Object.keys(routingInfo).length > 0 && { routingInfo }),
          rows,
        }),
      respond: interswarmResponse,
    },
    { route: "sendInterswarmMessage", body: withoutToken(given) },
  );
}

function interswarmResponse({ taskId: task_id, outcome, events }: RoundEnd): RouteResponse {
  if (outcome === undefined) {
    const body = { response: null, events, task_id, status: "running" };
    return { status: 202, body, headers: { location: eventsUrl(task_id) } };
  }
  const { message: response, status, error } = outcome;
  return {
    status: 200,
    body: { response, events, task_id, status, ...(error !== undefined && { error }) },
  };
}

/** The route also takes wrappers of other swarms, so its schema knows only some of the fields. */
function checkFields(given: InterswarmMessageRequest): void {
  const known = Object.keys(InterswarmMessageRequest.shape);
  const unknown = Object.keys(given).find((field) => !known.includes(field));
  if (unknown === undefined) return;
  throw new MailroomError("bad_request", unknownField(unknown, known), { details: { field: unknown } });
}

/** Accepts both names of every field, and infers the message type from the number of targets (REF-9). */
function readWanted(given: InterswarmMessageRequest): Wanted {
  if (given.user_token === undefined || given.user_token === "") {
    throw new MailroomError("unauthenticated", "user token is required", {
      details: { field: "user_token" },
    });
  }
  const body = given.body ?? given.message ?? "";
  const targets = given.targets ?? (given.target_agent === undefined ? [] : [given.target_agent]);
  if (body === "" || targets.length === 0) {
    throw new MailroomError("bad_request", "'targets' and 'body' are required", {
      details: { field: body === "" ? "body" : "targets" },
    });
  }
  const type = given.msg_type ?? (targets.length === 1 ? "request" : "broadcast");
  if (type !== "request" && type !== "broadcast") {
    throw new MailroomError("bad_request", `msg_type '${type}' is not supported for interswarm send`, {
      details: { field: "msg_type" },
    });
  }
  if (type === "request" && targets.length !== 1) {
    throw new MailroomError("bad_request", "'request' messages require exactly one target", {
      details: { field: "targets" },
    });
  }
  return { body, targets, type };
}

/** What cannot be delivered for certain is an error now, not a failed task later. */
function checkTargets(
  { mailroom, federation: { registry } }: ActiveFederationDoor,
  targets: readonly string[],
): void {
  for (const target of targets) {
    const { name, swarm } = parseAgentAddress(target);
    if (name === "" || swarm === "") {
      throw new MailroomError("bad_request", `'${target}' is not an address: write agent@swarm`, {
        details: { field: "targets" },
      });
    }
    if (swarm !== undefined && swarm !== mailroom.swarm.name && !registry.has(swarm)) {
      throw new MailroomError("unknown_swarm", `unknown swarm endpoint: '${swarm}'`);
    }
  }
}

/** The token is never used or stored, not even as part of a fingerprint (decision E8). */
function withoutToken({ user_token: _, ...rest }: InterswarmMessageRequest): unknown {
  return rest;
}
