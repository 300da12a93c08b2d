/** MAIL as pure data: the module's entry point. */
export * from "./address.js";
export * from "./build.js";
export * from "./call-message.js";
export * from "./calls.js";
export * from "./compat.js";
export * from "./errors.js";
export { buildHelp, type HelpReader, toolHelpText } from "./help.js";
export { SUMMARY_TEXT } from "./help-texts.js";
export {
  AddressType,
  InterswarmMessageType,
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
export {
  MAIL_ADDRESS_TYPES,
  MAIL_ALL_LOCAL_AGENTS,
  MAIL_INTERSWARM_MESSAGE_TYPES,
  MAIL_MESSAGE_TYPES,
} from "./names.js";
export * from "./owner.js";
export * from "./priority.js";
export {
  buildBodyXml,
  escapeAttribute,
  escapeOwnTags,
  escapeText,
  recipientsOf,
  renderMailXml,
  renderResult,
} from "./render.js";
export { type JsonSchema, mailCoreSchema, mailInterswarmSchema, type SchemaOptions } from "./schema.js";
export * from "./subjects.js";
export { checkSwarm, type SwarmOutline } from "./swarm-file/check.js";
export { readSwarmFile, type SwarmFileContents, swarmFileJsonSchema } from "./swarm-file/index.js";
export { mistakeIn, parseJsonText } from "./swarm-file/json-text.js";
export {
  badSwarmFile,
  formatPath,
  formatProblem,
  formatProblems,
  type PathSegment,
  type SwarmFileProblem,
  swarmProblemsOf,
  type UnplacedProblem,
} from "./swarm-file/problems.js";
export {
  checkReferences,
  checkSwarmNames,
  outlineOfEntry,
  type ParsedSwarmFile,
  parseSwarmFile,
  within,
} from "./swarm-file/read.js";
export { ActionEntry, AgentEntry, McpServerEntry, SwarmEntry } from "./swarm-file/schema.js";
export { zodFindings } from "./swarm-file/zod-findings.js";
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
