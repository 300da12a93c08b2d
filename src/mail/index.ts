/** MAIL as pure data: what the other rooms and users of the library may import. */
export * from "./address.js";
export * from "./build.js";
export * from "./call-message.js";
export * from "./calls.js";
export * from "./compat.js";
export * from "./errors.js";
export { buildHelp, type HelpReader, toolHelpText } from "./help.js";
export {
  AddressType,
  InterswarmMessageType,
  MAIL_ADDRESS_TYPES,
  MAIL_ALL_LOCAL_AGENTS,
  MAIL_INTERSWARM_MESSAGE_TYPES,
  MAIL_MESSAGE_TYPES,
  MAILAddress,
  MAILBroadcast,
  MAILInterrupt,
  MAILInterswarmMessage,
  MAILMessage,
  type MAILMessageOf,
  type MAILPayload,
  MAILRequest,
  MAILResponse,
  MAX_TASK_ID_LENGTH,
  MessageType,
  PROTOCOL_VERSION,
  TaskId,
} from "./message.js";
export * from "./owner.js";
export * from "./priority.js";
export { buildBodyXml, escapeAttribute, escapeText, recipientsOf, renderMailXml } from "./render.js";
export { type JsonSchema, mailCoreSchema, mailInterswarmSchema, type SchemaOptions } from "./schema.js";
export * from "./subjects.js";
export * from "./tool-arguments.js";
export { isMailToolName, MAIL_TOOL_NAMES, type MailToolName } from "./tool-table.js";
export * from "./tools.js";
export {
  checkInterswarmMessage,
  checkMailMessage,
  parseInterswarmMessage,
  parseMailMessage,
  type ValidateOptions,
} from "./validate.js";
