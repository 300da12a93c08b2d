/**
 * MAIL: Data Model. The wire types as zod schemas, with inferred TypeScript types. Published JSON Schemas and
 * validators are derived from this file.
 *
 * Field names are the wire's (snake_case). Optional fields are absent when unknown, never `null`: `compat.ts` removes
 * the nulls of other implementations.
 */
import { z } from "zod";
import { MAIL_ADDRESS_TYPES, MAIL_INTERSWARM_MESSAGE_TYPES, MAIL_MESSAGE_TYPES } from "./names.js";

/** The protocol version that MAIL servers report. Mailroom's own version is separate. */
export const PROTOCOL_VERSION = "1.2";

/** Schema and type: the kind of an address. */
export const AddressType = z.enum(MAIL_ADDRESS_TYPES);
export type AddressType = z.infer<typeof AddressType>;

/** Schema and type: the kind of a message. */
export const MessageType = z.enum(MAIL_MESSAGE_TYPES);
export type MessageType = z.infer<typeof MessageType>;

/** Schema and type: the kind of a message between swarms. */
export const InterswarmMessageType = z.enum(MAIL_INTERSWARM_MESSAGE_TYPES);
export type InterswarmMessageType = z.infer<typeof InterswarmMessageType>;

/** A UUID of any version: the specification requires only `format: uuid`. */
const Uuid = z.guid();

const Timestamp = z.iso.datetime({ offset: true });

const TASK_ID_DESCRIPTION =
  "Names the task within its owner's scope. Ids that an implementation makes are UUIDs; a caller may bring its own, " +
  "any string of 1 to 256 characters without control characters, so this value is exempt from `format: uuid`.";

/** Maximum length of a caller-chosen task id. */
export const MAX_TASK_ID_LENGTH = 256;

/** A caller-chosen task id need not be a UUID; see `TASK_ID_DESCRIPTION`. */
export const TaskId = z
  .string()
  .min(1)
  .max(MAX_TASK_ID_LENGTH)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must be rejected
  .regex(/^[^\u0000-\u001f\u007f-\u009f]*$/, "must not contain control characters")
  .meta({ description: TASK_ID_DESCRIPTION });

/** Free-form hints that accompany a payload (`remote_swarm`, `stream`, …). */
const RoutingInfo = z.record(z.string(), z.unknown()).readonly();

/** Schema and type: who sends or receives a message. */
export const MAILAddress = z
  .strictObject({ address_type: AddressType, address: z.string().min(1) })
  .readonly()
  .meta({ description: "Who sends or receives: `name`, or `name@swarm` for an agent of another swarm." });
export type MAILAddress = z.infer<typeof MAILAddress>;

const Recipients = z.array(MAILAddress).min(1).readonly();
const SwarmNames = z.array(z.string()).readonly();

/**
 * Builds the message types for one kind of task id. There are two kinds (any string, UUID only); everything else is the
 * same.
 */
function defineMessages(taskId: typeof TaskId | typeof Uuid) {
  const toOne = {
    sender: MAILAddress,
    recipient: MAILAddress,
    subject: z.string(),
    body: z.string(),
    sender_swarm: z.string().exactOptional(),
    recipient_swarm: z.string().exactOptional(),
    routing_info: RoutingInfo.exactOptional(),
  };
  const toMany = {
    sender: MAILAddress,
    recipients: Recipients,
    subject: z.string(),
    body: z.string(),
    sender_swarm: z.string().exactOptional(),
    recipient_swarms: SwarmNames.exactOptional(),
    routing_info: RoutingInfo.exactOptional(),
  };

  const MAILRequest = z
    .strictObject({ task_id: taskId, request_id: Uuid, ...toOne })
    .readonly()
    .meta({ description: "A message to one recipient that expects an answer." });
  const MAILResponse = z
    .strictObject({ task_id: taskId, request_id: z.string(), ...toOne })
    .readonly()
    .meta({ description: "An answer to one recipient; `request_id` names the request where it is known." });
  const MAILBroadcast = z
    .strictObject({ task_id: taskId, broadcast_id: Uuid, ...toMany })
    .readonly()
    .meta({ description: "A message to several recipients, or to agent `all`." });
  const MAILInterrupt = z
    .strictObject({ task_id: taskId, interrupt_id: Uuid, ...toMany })
    .readonly()
    .meta({ description: "A message that its recipients read before other mail." });

  const envelope = { id: Uuid, timestamp: Timestamp };
  const MAILMessage = z
    .discriminatedUnion("msg_type", [
      z.strictObject({ ...envelope, message: MAILRequest, msg_type: z.literal("request") }).readonly(),
      z.strictObject({ ...envelope, message: MAILResponse, msg_type: z.literal("response") }).readonly(),
      z.strictObject({ ...envelope, message: MAILBroadcast, msg_type: z.literal("broadcast") }).readonly(),
      z.strictObject({ ...envelope, message: MAILInterrupt, msg_type: z.literal("interrupt") }).readonly(),
      z
        .strictObject({ ...envelope, message: MAILBroadcast, msg_type: z.literal("broadcast_complete") })
        .readonly(),
    ])
    .meta({ description: "The envelope: `msg_type` says what `message` is." });

  const wrapper = {
    message_id: z.string().min(1),
    source_swarm: z.string().min(1),
    target_swarm: z.string().min(1),
    timestamp: Timestamp,
    task_owner: z
      .string()
      .min(1)
      .meta({ description: "`role:id@swarm` of the instance that owns the task." }),
    task_contributors: z
      .array(z.string())
      .readonly()
      .meta({ description: "`role:id@swarm` of every instance that works on the task, its owner included." }),
    auth_token: z.string().exactOptional(),
    metadata: z.record(z.string(), z.unknown()).readonly().exactOptional(),
  };
  const MAILInterswarmMessage = z
    .discriminatedUnion("msg_type", [
      z.strictObject({ ...wrapper, payload: MAILRequest, msg_type: z.literal("request") }).readonly(),
      z.strictObject({ ...wrapper, payload: MAILResponse, msg_type: z.literal("response") }).readonly(),
      z.strictObject({ ...wrapper, payload: MAILBroadcast, msg_type: z.literal("broadcast") }).readonly(),
      z.strictObject({ ...wrapper, payload: MAILInterrupt, msg_type: z.literal("interrupt") }).readonly(),
    ])
    .meta({
      description: "What travels between swarms: a payload (not an envelope) and whose task it belongs to.",
    });

  return { MAILRequest, MAILResponse, MAILBroadcast, MAILInterrupt, MAILMessage, MAILInterswarmMessage };
}

const messages = defineMessages(TaskId);

/** The same types with `format: uuid` for `task_id`, as for every other id (`strict_ids`). */
export const strictMessages = defineMessages(Uuid);

/** Schema and type: a message that asks an agent for a response. */
export const MAILRequest = messages.MAILRequest;
export type MAILRequest = z.infer<typeof MAILRequest>;

/** Schema and type: the answer to a request. */
export const MAILResponse = messages.MAILResponse;
export type MAILResponse = z.infer<typeof MAILResponse>;

/** Schema and type: a message to several agents, which none has to answer. */
export const MAILBroadcast = messages.MAILBroadcast;
export type MAILBroadcast = z.infer<typeof MAILBroadcast>;

/** Schema and type: an urgent message to several agents. */
export const MAILInterrupt = messages.MAILInterrupt;
export type MAILInterrupt = z.infer<typeof MAILInterrupt>;

/** Schema and type: a message of any kind, with its envelope. */
export const MAILMessage = messages.MAILMessage;
export type MAILMessage = z.infer<typeof MAILMessage>;

/** Schema and type: a message between two swarms, with its envelope. */
export const MAILInterswarmMessage = messages.MAILInterswarmMessage;
export type MAILInterswarmMessage = z.infer<typeof MAILInterswarmMessage>;

/** Payload of an envelope or wrapper. */
export type MAILPayload = MAILMessage["message"];

/** The envelope of one message type: `MAILMessageOf<"request">`. */
export type MAILMessageOf<T extends MessageType> = Extract<MAILMessage, { readonly msg_type: T }>;
