/** What this room takes from the official SDK. */
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

/** JSON-RPC's word for "something is wrong with me". */
export const INTERNAL_ERROR = -32603;
