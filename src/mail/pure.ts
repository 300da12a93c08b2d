/** The part of MAIL that a browser loads: no schemas, so no zod. */
export { formatAgentAddress, isInterswarmAddress, parseAgentAddress } from "./address.js";
export type { AgentToolCall } from "./calls.js";
export type { MAILAddress, MAILMessage, MAILResponse } from "./message.js";
export { MAIL_ALL_LOCAL_AGENTS } from "./names.js";
export { tierOf } from "./priority.js";
export { recipientsOf } from "./render.js";
export { FAILED_AGENT, isEndingNotice, isSystemSubject, SYSTEM_SUBJECTS } from "./subjects.js";
