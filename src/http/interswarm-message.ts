/** A person's message to agents of other swarms (mail.md 7.7): a task of theirs that is worked on elsewhere. */
import type { MailEvent } from "../engine/view/events.js";
import type { Federation } from "../federation/index.js";
import { parseAgentAddress } from "../mail/address.js";
import { eventsUrl, waitFor } from "./answers.js";
import type { Door } from "./door.js";
import { HttpError } from "./errors.js";
import { whenGone } from "./gone.js";
import { type Answer, type Caller, type Handled, type RawCall, STREAMED } from "./route.js";
import type { InterswarmMessageRequest } from "./schemas/interswarm.js";
import { streamTask } from "./task-stream.js";
import { type PostedRound, REPLAYED } from "./writes.js";

const DEFAULT_SUBJECT = "Interswarm Message";

interface Wanted {
  readonly body: string;
  readonly targets: readonly string[];
  readonly type: "request" | "broadcast";
}

export async function sendToSwarms(
  door: Door,
  federation: Federation,
  { request, reply }: RawCall,
  caller: Caller,
  given: InterswarmMessageRequest,
): Promise<Handled> {
  const wanted = readWanted(given);
  checkTargets(door, federation, wanted.targets);
  const streams = request.headers.accept?.toLowerCase().includes("text/event-stream") === true;
  const leave = (streams ? door.streams : door.waits).take(caller.name);
  try {
    const { stream, ignore_stream_pings } = given;
    const routingInfo = {
      ...given.routing_info,
      ...(stream !== undefined && { stream }),
      ...(ignore_stream_pings !== undefined && { ignore_stream_pings }),
    };
    const write = { request, caller, route: "sendInterswarmMessage", params: {}, body: withoutToken(given) };
    const { result: posted, replayed } = await door.writes.round(write, (rows) =>
      door.mailroom.runtime.post(caller.instance, {
        ...wanted,
        subject: given.subject ?? DEFAULT_SUBJECT,
        ...(given.task_id !== undefined && { taskId: given.task_id }),
        ...(Object.keys(routingInfo).length > 0 && { routingInfo }),
        rows,
      }),
    );
    request.taskKey = posted.key;
    const headers = replayed ? REPLAYED : {};
    if (streams) {
      await streamTask({
        ...door.streaming,
        reply,
        caller,
        task: { id: posted.taskId, key: posted.key },
        after: `${posted.number - 1}`,
        end: { kind: "outcome", start: posted },
        headers: { location: eventsUrl(posted.taskId), ...headers },
      });
      return STREAMED;
    }
    const answer = await answerOf(door, caller, reply, given, posted);
    return { ...answer, headers: { ...answer.headers, ...headers } };
  } finally {
    leave();
  }
}

/** Both names of everything, and the rules of mail.md 14 #27 and #28. */
function readWanted(given: InterswarmMessageRequest): Wanted {
  if (given.user_token === undefined || given.user_token === "") {
    throw new HttpError("unauthenticated", "user token is required", { details: { field: "user_token" } });
  }
  const body = given.body ?? given.message ?? "";
  const targets = given.targets ?? (given.target_agent === undefined ? [] : [given.target_agent]);
  if (body === "" || targets.length === 0) {
    throw new HttpError("bad_request", "'targets' and 'body' are required", {
      details: { field: body === "" ? "body" : "targets" },
    });
  }
  const type = given.msg_type ?? (targets.length === 1 ? "request" : "broadcast");
  if (type !== "request" && type !== "broadcast") {
    throw new HttpError("bad_request", `msg_type '${type}' is not supported for interswarm send`, {
      details: { field: "msg_type" },
    });
  }
  if (type === "request" && targets.length !== 1) {
    throw new HttpError("bad_request", "'request' messages require exactly one target", {
      details: { field: "targets" },
    });
  }
  return { body, targets, type };
}

/** What cannot be delivered for certain is an error now, not a failed task later. */
function checkTargets(door: Door, { registry }: Federation, targets: readonly string[]): void {
  for (const target of targets) {
    const { name, swarm } = parseAgentAddress(target);
    if (name === "" || swarm === "") {
      throw new HttpError("bad_request", `'${target}' is not an address: write agent@swarm`, {
        details: { field: "targets" },
      });
    }
    if (swarm !== undefined && swarm !== door.mailroom.swarm.name && !registry.has(swarm)) {
      throw new HttpError("unknown_swarm", `unknown swarm endpoint: '${swarm}'`);
    }
  }
}

/** Decisions E8: the token is nobody's business, not even as part of a fingerprint. */
function withoutToken({ user_token: _, ...rest }: InterswarmMessageRequest): unknown {
  return rest;
}

async function answerOf(
  door: Door,
  caller: Caller,
  reply: RawCall["reply"],
  given: InterswarmMessageRequest,
  posted: PostedRound,
): Promise<Answer> {
  const { raw } = reply;
  const seconds = given.timeout ?? door.options.defaultTimeout ?? 3600;
  const outcome = await waitFor(posted.outcome, {
    clock: door.clock,
    ms: seconds * 1000,
    giveUpWhen: [(giveUp) => door.closing.listen(giveUp), (giveUp) => whenGone(raw, giveUp)],
  });
  const events = given.stream === true ? await eventsOf(door, caller, posted.taskId) : null;
  const { taskId: task_id } = posted;
  if (outcome === undefined) {
    return {
      status: 202,
      body: { response: null, events, task_id, status: "running" },
      headers: { location: eventsUrl(task_id) },
    };
  }
  const { message: response, status, error } = outcome;
  return {
    status: 200,
    body: { response, events, task_id, status, ...(error !== undefined && { error }) },
  };
}

async function eventsOf(door: Door, caller: Caller, taskId: string): Promise<MailEvent[]> {
  const task = await door.mailroom.instance(caller.instance).requireTask(taskId);
  const events: MailEvent[] = [];
  for await (const event of task.events()) events.push(event);
  return events;
}
