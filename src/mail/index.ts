/** MAIL as pure data: the module's entry point. */
export * from "./address.js";
export * from "./build.js";
export * from "./call-message.js";
export * from "./calls.js";
export * from "./compat.js";
export * from "./errors.js";
export { buildHelp } from "./help.js";
export { SUMMARY_TEXT } from "./help-texts.js";
export {
  AddressType,
  MAILAddress,
  MAILInterswarmMessage,
  MAILMessage,
  type MAILMessageOf,
  MessageType,
  PROTOCOL_VERSION,
  TaskId,
} from "./message.js";
export { MAIL_ALL_LOCAL_AGENTS } from "./names.js";
export * from "./owner.js";
export * from "./priority.js";
export {
  escapeOwnTags,
  escapeText,
  recipientsOf,
  renderMailXml,
  renderResult,
} from "./render.js";
export * from "./subjects.js";
export { checkSwarm, type SwarmOutline } from "./swarm-file/check.js";
export { readSwarmFile } from "./swarm-file/index.js";
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
export { ActionEntry, AgentEntry, BudgetEntry, McpServerEntry, SwarmEntry } from "./swarm-file/schema.js";
export { zodFindings } from "./swarm-file/zod-findings.js";
export * from "./tool-arguments.js";
export { isMailToolName, type MailToolName } from "./tool-table.js";
export * from "./tools.js";
export {
  checkInterswarmMessage,
  checkMailMessage,
  parseMailMessage,
} from "./validate.js";
