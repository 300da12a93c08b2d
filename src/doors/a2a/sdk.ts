/** The parts of the official SDK that this module uses. */
export {
  A2A_PROTOCOL_VERSION,
  A2A_VERSION_HEADER,
  AgentCard,
  type Artifact,
  formatSSEErrorEvent,
  formatSSEEvent,
  type Message,
  type Part,
  Role,
  type SendMessageRequest,
  SSE_HEADERS,
  type StreamResponse,
  type Task,
  TaskState,
  type TaskStatus,
} from "@a2a-js/sdk";
export { A2A_LEGACY_PROTOCOL_VERSION, isLegacyJsonRpcMethod } from "@a2a-js/sdk/compat/v0_3";
export { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
export {
  A2AError,
  ContentTypeNotSupportedError,
  ExtendedAgentCardNotConfiguredError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";

/** JSON-RPC's internal error. */
export const INTERNAL_ERROR = -32603;
