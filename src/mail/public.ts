/**
 * `agent-mailroom/mail`: the MAIL protocol as data. Messages, addresses, tools, swarm files and schemas, with the names
 * of the reference implementation where it has them (docs/from-python.md).
 */
export {
  type AgentAddress,
  checkAgentName,
  checkSwarmName,
  createAdminAddress,
  createAgentAddress,
  createSystemAddress,
  createUserAddress,
  formatAgentAddress,
  isInterswarmAddress,
  normalizeAddress,
  parseAgentAddress,
} from "./address.js";
export {
  allLocalAgents,
  buildBroadcast,
  buildComplete,
  buildInterrupt,
  buildRequest,
  buildResponse,
  buildSystemBroadcast,
  buildSystemComplete,
  buildSystemResponse,
} from "./build.js";
export { convertCallToMailMessage } from "./call-message.js";
export {
  type AgentToolCall,
  assistantEntries,
  callsFromCompletion,
  callsFromResponses,
  type HistoryEntry,
  normalizeBreakpointCall,
  toolResultEntry,
} from "./calls.js";
export {
  acceptInterswarmMessage,
  acceptMailMessage,
  isTaskComplete,
  parseAcceptedInterswarmMessage,
  parseAcceptedMailMessage,
} from "./compat.js";
export type { Checked, FormatProblem } from "./errors.js";
export { buildHelp, toolHelpText } from "./help.js";
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
export {
  checkTaskContributor,
  formatTaskContributor,
  parseTaskContributor,
  type TaskContributor,
} from "./owner.js";
export { type Tier, tierOf } from "./priority.js";
export { buildBodyXml, recipientsOf, renderMailXml } from "./render.js";
export { type JsonSchema, mailCoreSchema, mailInterswarmSchema } from "./schema.js";
export { isEndingNotice, isSystemSubject, SYSTEM_SUBJECTS, type SystemSubject } from "./subjects.js";
export type { SwarmFileProblem } from "./swarm-file/problems.js";
export { readSwarmFile, type SwarmFileContents } from "./swarm-file/read.js";
export { swarmFileJsonSchema } from "./swarm-file/schema.js";
export { checkToolArguments, type MailToolArguments } from "./tool-arguments.js";
export { isMailToolName, MAIL_TOOL_NAMES, type MailToolName } from "./tool-table.js";
export {
  createAcknowledgeBroadcastTool,
  createAwaitMessageTool,
  createBroadcastTool,
  createHelpTool,
  createIgnoreBroadcastTool,
  createInterruptTool,
  createInterswarmBroadcastTool,
  createMailTools,
  createRequestTool,
  createResponseTool,
  createSupervisorTools,
  createSwarmDiscoveryTool,
  createTaskCompleteTool,
  mailTool,
  mailToolNamesFor,
  mailToolsFor,
  type ToolDefinition,
  type ToolSpec,
  type ToolStyle,
  toolSpec,
} from "./tools.js";
export {
  checkInterswarmMessage,
  checkMailMessage,
  parseInterswarmMessage,
  parseMailMessage,
} from "./validate.js";
