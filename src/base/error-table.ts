/** Every error code, once. `docs/errors.md` is generated from it. */

/** What a kind of error is in each protocol. A row overrides what differs. */
export interface Transports {
  /** HTTP status. */
  readonly status: number;
  /** JSON-RPC code of MAP. */
  readonly jsonRpc: number;
  /** Class of the A2A SDK. */
  readonly a2a: A2aErrorName;
  /** Exit code of the command line. */
  readonly exit: number;
}

export type A2aErrorName =
  | "RequestMalformedError"
  | "TaskNotFoundError"
  | "TaskNotCancelableError"
  | "UnsupportedOperationError"
  | "A2AError";

export const ERROR_KINDS = {
  invalid: { status: 400, jsonRpc: -32602, a2a: "RequestMalformedError", exit: 1 },
  unauthenticated: { status: 401, jsonRpc: 1001, a2a: "UnsupportedOperationError", exit: 4 },
  forbidden: { status: 403, jsonRpc: 1003, a2a: "UnsupportedOperationError", exit: 4 },
  not_found: { status: 404, jsonRpc: 2000, a2a: "TaskNotFoundError", exit: 1 },
  conflict: { status: 409, jsonRpc: -32602, a2a: "UnsupportedOperationError", exit: 1 },
  too_large: { status: 413, jsonRpc: 4002, a2a: "RequestMalformedError", exit: 1 },
  limited: { status: 429, jsonRpc: 4001, a2a: "A2AError", exit: 1 },
  unavailable: { status: 503, jsonRpc: 4000, a2a: "A2AError", exit: 1 },
  internal: { status: 500, jsonRpc: -32603, a2a: "A2AError", exit: 1 },
} as const satisfies Readonly<Record<string, Transports>>;
export type ErrorKind = keyof typeof ERROR_KINDS;

export interface ErrorRow extends Partial<Transports> {
  readonly kind: ErrorKind;
  /** Milliseconds after which a retry makes sense. */
  readonly retryAfter?: number;
  readonly meaning: string;
  readonly remedy: string;
}
export type ErrorTable = Readonly<Record<string, ErrorRow>>;

/** What a caller of the server can get. The HTTP interface sends exactly these codes. */
export const PUBLIC_ERRORS = {
  bad_request: {
    kind: "invalid",
    meaning: "The request is malformed; `field` names the part, if one is at fault.",
    remedy: "Correct the request as the message says.",
  },
  bad_json: {
    kind: "invalid",
    meaning: "The text is not JSON (`line` and `column` give the position), or it is nested too deeply.",
    remedy: "Send valid JSON.",
  },
  bad_url: {
    kind: "invalid",
    meaning: "The URL cannot be decoded.",
    remedy: "Percent-encode the parts of the path.",
  },
  bad_input: {
    kind: "invalid",
    meaning: "A value cannot be used.",
    remedy: "Change the value as the message says.",
  },
  bad_answer: {
    kind: "invalid",
    a2a: "UnsupportedOperationError",
    meaning: "An agent's answer has neither a tool call nor text, or a call has more than one result.",
    remedy: "Answer with text or at least one tool call, and with one result per open call.",
  },
  bad_swarm_file: {
    kind: "invalid",
    meaning: "The swarm file is not valid; `problems` lists every problem.",
    remedy: "Correct the listed problems; `mailroom validate` checks a file.",
  },
  unknown_agent: {
    kind: "invalid",
    meaning: "The swarm has no agent with this name.",
    remedy: "Use the name of an agent of the swarm.",
  },
  not_entrypoint: {
    kind: "invalid",
    meaning: "The agent does not accept messages from users; `entrypoints` lists those that do.",
    remedy: "Send the message to an entrypoint.",
  },
  missing_results: {
    kind: "invalid",
    meaning: "Open calls have no result; `missing` lists them.",
    remedy: "Give one result for every open call.",
  },
  unknown_calls: {
    kind: "invalid",
    meaning: "Results were given for calls that are not open; `unknown` lists them.",
    remedy: "Give results for the open calls only.",
  },
  bad_arguments: {
    kind: "invalid",
    meaning: "The changed arguments of a call are invalid.",
    remedy: "Correct the arguments; the error names every problem.",
  },
  bad_approvers: {
    kind: "invalid",
    meaning: "The list of approvers is malformed or too long.",
    remedy: "Name principals (`user:bob`, `admin:root`) or roles (`user`, `admin`).",
  },
  bad_wrapper: {
    kind: "invalid",
    meaning: "The interswarm message is malformed; `errors` lists every problem.",
    remedy: "Correct the message; its schema is in `schemas/`.",
  },
  wrong_swarm: {
    kind: "invalid",
    meaning: "The message is addressed to another swarm.",
    remedy: "Send it to the server of that swarm.",
  },
  too_many_hops: {
    kind: "invalid",
    meaning: "The message was forwarded by too many swarms.",
    remedy: "Check the swarms for a forwarding loop.",
  },
  bad_swarm_name: {
    kind: "invalid",
    meaning: "The name cannot be given to a remote swarm.",
    remedy: "Choose another name.",
  },
  bad_swarm_url: {
    kind: "invalid",
    meaning: "The URL is not a base URL of a swarm, or it is not allowed.",
    remedy: "Use an `https` URL, or allow the host with `federation.allow`.",
  },
  name_differs: {
    kind: "invalid",
    meaning: "The swarm at this URL has another name.",
    remedy: "Register it under the name that it reports.",
  },
  method_not_allowed: {
    kind: "invalid",
    status: 405,
    meaning: "The path does not support this method.",
    remedy: "Use a method of the `Allow` header.",
  },
  unsupported_media_type: {
    kind: "invalid",
    status: 415,
    meaning: "The body is not JSON.",
    remedy: "Send `content-type: application/json`.",
  },
  unauthenticated: {
    kind: "unauthenticated",
    meaning: "Missing or invalid credentials.",
    remedy: "Send a valid token; `mailroom token create` makes one.",
  },
  peer_mismatch: {
    kind: "unauthenticated",
    meaning: "The message names another sender than its token.",
    remedy: "Send messages with the token of the swarm that sends them.",
  },
  bad_signature: {
    kind: "unauthenticated",
    meaning: "The signature is missing or wrong; `reason` says which.",
    remedy: "Sign the message with the secret that both swarms share.",
  },
  invalid_role: {
    kind: "forbidden",
    status: 401,
    meaning: "The caller's role may not do this (routes of the MAIL protocol).",
    remedy: "Use a token of another role.",
  },
  forbidden: {
    kind: "forbidden",
    meaning: "The caller's role may not do this (other routes).",
    remedy: "Use a token of another role.",
  },
  foreign_origin: {
    kind: "forbidden",
    meaning: "In development mode the server accepts only requests from this machine.",
    remedy: "Use `localhost`, or run the server without `--dev`.",
  },
  not_found: {
    kind: "not_found",
    meaning: "The path does not exist.",
    remedy: "Check the path; `/docs` lists every route.",
  },
  unknown_task: {
    kind: "not_found",
    jsonRpc: 10000,
    meaning: "The caller has no task with this id.",
    remedy: "List the tasks, or check which caller the token belongs to.",
  },
  unknown_token: {
    kind: "not_found",
    meaning: "No token has this id.",
    remedy: "List the tokens with `mailroom token list`.",
  },
  unknown_item: {
    kind: "not_found",
    meaning: "No delivery or mesh item has this name.",
    remedy: "List the items and use a listed name.",
  },
  unknown_recipient: {
    kind: "not_found",
    meaning: "No local agent has the name that the message is addressed to.",
    remedy: "Address an agent of this swarm.",
  },
  unknown_swarm: {
    kind: "not_found",
    meaning: "No swarm is registered under this name.",
    remedy: "Register it first, or list the registered swarms.",
  },
  unknown_proposal: {
    kind: "not_found",
    meaning: "No swarm with this name was proposed.",
    remedy: "List the open proposals.",
  },
  wrong_state: {
    kind: "conflict",
    meaning: "The task's state does not allow this.",
    remedy: "Check the task's status first.",
  },
  not_paused: {
    kind: "conflict",
    meaning: "The task does not wait for a breakpoint result.",
    remedy: "Check the task's status first.",
  },
  approval_needed: {
    kind: "conflict",
    meaning: "Calls of the task wait for approval, which a text cannot give; `calls` lists them.",
    remedy:
      "Send a decision for each call: its `call_id`, `approve` or `reject`, changed arguments or a reason.",
  },
  not_manual: {
    kind: "conflict",
    meaning: "The task does not run in manual mode.",
    remedy: "Start the task in manual mode to run its steps one by one.",
  },
  already_ended: {
    kind: "conflict",
    jsonRpc: 10001,
    a2a: "TaskNotCancelableError",
    meaning: "The task has already ended.",
    remedy: "Start a new task.",
  },
  owner_mismatch: {
    kind: "conflict",
    meaning: "The task has another owner.",
    remedy: "Use the token of the task's owner, or another task id.",
  },
  busy: {
    kind: "conflict",
    meaning: "The agent is running a step.",
    remedy: "Retry when the step has ended.",
  },
  stale_turn: {
    kind: "conflict",
    meaning: "The turn has ended.",
    remedy: "Discard the answer.",
  },
  stale_attempt: {
    kind: "conflict",
    meaning: "The message was lent again, answered or withdrawn.",
    remedy: "Discard the answer.",
  },
  no_mail: {
    kind: "conflict",
    meaning: "No message waits for the agent.",
    remedy: "Retry when a message has arrived.",
  },
  write_conflict: {
    kind: "conflict",
    meaning: "A concurrent write changed the same data.",
    remedy: "Retry the request.",
  },
  swarm_name_differs: {
    kind: "conflict",
    meaning: "A swarm can only be replaced by one of the same name.",
    remedy: "Keep the name, or start another server.",
  },
  idempotency_key_reused: {
    kind: "conflict",
    status: 422,
    meaning: "The idempotency key was used with another request.",
    remedy: "Use a new key for a new request.",
  },
  too_large: {
    kind: "too_large",
    meaning: "The request body is too large.",
    remedy: "Send less, or raise `server.body_limit`.",
  },
  too_many_requests: {
    kind: "limited",
    retryAfter: 10_000,
    meaning: "The caller, its address or the peer sends too many requests.",
    remedy: "Retry after the time in `Retry-After`.",
  },
  too_many_failures: {
    kind: "limited",
    retryAfter: 60_000,
    meaning: "Too many failed authentications from this address.",
    remedy: "Retry after the time in `Retry-After`, with a valid token.",
  },
  mailbox_full: {
    kind: "unavailable",
    retryAfter: 5_000,
    meaning: "Too many messages wait for the agent.",
    remedy: "Retry later, or raise `limits.mailbox`.",
  },
  overloaded: {
    kind: "unavailable",
    retryAfter: 1_000,
    meaning: "The server has reached one of its limits.",
    remedy: "Retry later.",
  },
  store_busy: {
    kind: "unavailable",
    retryAfter: 1_000,
    meaning: "The write queue is full, or the disk accepts no writes at the moment.",
    remedy: "Retry later; if it persists, check the disk.",
  },
  store_failed: {
    kind: "unavailable",
    retryAfter: 5_000,
    jsonRpc: -32603,
    exit: 74,
    meaning: "The store has failed and accepts no writes until the server restarts.",
    remedy: "Check the disk, then restart the server.",
  },
  closed: {
    kind: "unavailable",
    retryAfter: 5_000,
    meaning: "The server or the library instance is shutting down.",
    remedy: "Retry when it is running again; acknowledged messages are kept.",
  },
  auth_unavailable: {
    kind: "unavailable",
    retryAfter: 5_000,
    meaning: "The authentication provider is unavailable.",
    remedy: "Retry later; the server's log has the reason.",
  },
  no_registry: {
    kind: "unavailable",
    retryAfter: 3_600_000,
    meaning: "The server has no registry of remote swarms.",
    remedy: "Set `server.swarm.registry` and restart the server.",
  },
  internal_error: {
    kind: "internal",
    meaning: "An unexpected failure in the server; `request_id` identifies it in the log.",
    remedy: "Look for the request id in the server's log and report the failure.",
  },
} as const satisfies ErrorTable;

/** What the library, the client and the command line throw. A request that fails with one gets `internal_error`. */
const LOCAL_ERRORS = {
  // Journal and store
  unknown_journal: {
    kind: "not_found",
    meaning: "No journal has this key.",
    remedy: "Check the key.",
  },
  decide_failed: {
    kind: "internal",
    meaning: "The rules of a task or conversation failed on a command: a bug.",
    remedy: "Report the message and the stack trace.",
  },
  stale_append: {
    kind: "conflict",
    jsonRpc: 4000,
    meaning: "Another writer appended to the journal first.",
    remedy: "Read the journal again and repeat the decision.",
  },
  row_conflict: {
    kind: "conflict",
    meaning: "The condition of a row write does not hold.",
    remedy: "Read the row again and repeat the decision.",
  },
  not_storable: {
    kind: "invalid",
    meaning: "The value cannot be stored as JSON.",
    remedy: "Return plain JSON data within the size limits.",
  },
  invalid_batch: {
    kind: "internal",
    meaning: "The store cannot interpret the batch.",
    remedy: "Report the failure: this is a defect in the calling code.",
  },
  store_closed: {
    kind: "unavailable",
    meaning: "The store is closed.",
    remedy: "Open the store again.",
  },
  store_locked: {
    kind: "conflict",
    meaning: "Another process uses the data directory.",
    remedy: "Stop that process, or use another data directory.",
  },
  store_directory: {
    kind: "invalid",
    meaning: "The data directory cannot be created.",
    remedy: "Choose a directory that this user can write to.",
  },
  store_damaged: {
    kind: "internal",
    meaning: "The database file is damaged. It was not changed.",
    remedy: "Restore a backup, or use another data directory.",
  },
  store_version: {
    kind: "invalid",
    meaning:
      "The database file belongs to another version of Mailroom, or to another program. It was not changed.",
    remedy: "Use the version that wrote it, or another data directory.",
  },
  // Agents and their turns
  turn_held: {
    kind: "unavailable",
    meaning: "The agent asked to postpone the turn.",
    remedy: "Resume the turn when the reason no longer applies.",
  },
  stopped: {
    kind: "unavailable",
    meaning: "The run was stopped: it was cancelled, timed out, or the process is closing.",
    remedy: "See `reason`.",
  },
  cannot_reply: {
    kind: "invalid",
    meaning: "The agent replied to a sender that it cannot answer.",
    remedy: "Reply only to messages that expect an answer.",
  },
  empty_answer: {
    kind: "invalid",
    meaning: "The agent did nothing with its message.",
    remedy: "Call a verb of `mail`, or return an answer.",
  },
  mixed_answer: {
    kind: "invalid",
    meaning: "The agent used `mail` and also returned an answer, so their order is unknown.",
    remedy: "Use one or the other.",
  },
  agent_bad_answer: {
    kind: "invalid",
    meaning: "The agent returned a value that is not an answer.",
    remedy: "Return text, an answer object or nothing.",
  },
  no_rule: {
    kind: "invalid",
    meaning: "No rule of the scripted agent matches the message.",
    remedy: "Add a rule, or a last rule without conditions.",
  },
  no_value: {
    kind: "invalid",
    meaning: "A template of a scripted agent refers to a missing value.",
    remedy: "Correct the placeholder, or give it a default with `|`.",
  },
  bad_template: {
    kind: "invalid",
    meaning: "A placeholder in a template is not valid.",
    remedy: "Correct the placeholder as the message says.",
  },
  scripted_failure: {
    kind: "internal",
    meaning: "The scripted agent failed because its rule says so.",
    remedy: "Change the rule if the failure is not intended.",
  },
  no_credentials: {
    kind: "unauthenticated",
    meaning: "The model provider rejected the API key.",
    remedy: "Set a valid key in the environment variable that the agent uses.",
  },
  model_failed: {
    kind: "unavailable",
    meaning: "The model could not be called, or its answer is not usable.",
    remedy: "Retry later; the message has the provider's reason.",
  },
  model_refused: {
    kind: "forbidden",
    meaning: "The model or its provider declined to answer.",
    remedy: "Change the request.",
  },
  bad_agent_params: {
    kind: "invalid",
    meaning: "The agent cannot be created from these parameters.",
    remedy: "Correct the listed parameters.",
  },
  bad_model: {
    kind: "invalid",
    meaning: "The model's connection is not configured correctly.",
    remedy: "Correct the parameter that the message names.",
  },
  // Actions
  bad_action: {
    kind: "invalid",
    meaning: "The action's definition is not valid.",
    remedy: "Correct the definition as the message says.",
  },
  bad_expression: {
    kind: "invalid",
    meaning: "The expression cannot be evaluated.",
    remedy: "Correct the expression at the given position.",
  },
  bad_forecast_request: {
    kind: "invalid",
    meaning: "The forecast request is not valid.",
    remedy: "Give a place, and a date as YYYY-MM-DD.",
  },
  no_memory: {
    kind: "unavailable",
    meaning: "The caller has no memory.",
    remedy: "Use the action in a task of an instance with a store.",
  },
  unknown_key: {
    kind: "not_found",
    meaning: "Nothing is stored under this key.",
    remedy: "List the keys first.",
  },
  not_a_swarm: {
    kind: "unavailable",
    meaning: "The address does not answer as a swarm.",
    remedy: "Check the address.",
  },
  file_no_roots: {
    kind: "invalid",
    meaning: "The file actions have no directories to work in.",
    remedy: "Configure at least one root.",
  },
  file_bad_path: {
    kind: "invalid",
    meaning: "The path is not valid.",
    remedy: "Use a relative path without special characters.",
  },
  file_outside: {
    kind: "forbidden",
    meaning: "The path is outside the configured directories.",
    remedy: "Use a path below one of the roots.",
  },
  file_missing: {
    kind: "not_found",
    meaning: "The file or directory does not exist.",
    remedy: "List the directory first.",
  },
  file_exists: {
    kind: "conflict",
    meaning: "The file already exists.",
    remedy: "Choose another name, or allow overwriting.",
  },
  not_a_file: {
    kind: "invalid",
    meaning: "The path is not a regular file.",
    remedy: "Use the path of a file.",
  },
  not_a_directory: {
    kind: "invalid",
    meaning: "The path, or a part of it, is not a directory.",
    remedy: "Use the path of a directory.",
  },
  not_text: {
    kind: "invalid",
    meaning: "The file is not text.",
    remedy: "Use a UTF-8 text file.",
  },
  file_too_large: {
    kind: "too_large",
    meaning: "The file is too large.",
    remedy: "Use a smaller file, or raise the limit.",
  },
  file_refused: {
    kind: "forbidden",
    meaning: "The file system rejected the operation.",
    remedy: "Check permissions and free space.",
  },
  tool_failed: {
    kind: "internal",
    meaning: "The tool of an MCP server reported an error.",
    remedy: "See the tool's message.",
  },
  mcp_server_unavailable: {
    kind: "unavailable",
    meaning: "The MCP server cannot be reached.",
    remedy: "Check that it runs and that its address is correct.",
  },
  mcp_server_failed: {
    kind: "internal",
    meaning: "The MCP server answered with an error.",
    remedy: "Change the request as the message says.",
  },
  mcp_server_bad_address: {
    kind: "invalid",
    meaning: "The address of the MCP server is not valid.",
    remedy: "Correct the address in the swarm file.",
  },
  mcp_server_closed: {
    kind: "unavailable",
    meaning: "The connection to the MCP server is closed.",
    remedy: "Open the mailroom again.",
  },
  // Messages, swarms and settings
  bad_message: {
    kind: "invalid",
    meaning: "The data is not a valid MAIL message.",
    remedy: "Correct the listed problems.",
  },
  bad_swarm: {
    kind: "invalid",
    meaning: "The definition of the swarm is not valid.",
    remedy: "Correct the listed problems.",
  },
  bad_reference: {
    kind: "invalid",
    meaning: "A reference in a swarm file cannot be resolved.",
    remedy: "Correct the reference, or the module that it names.",
  },
  bad_config: {
    kind: "invalid",
    meaning: "The configuration is not valid.",
    remedy: "Correct the listed settings; `docs/configuration.md` describes each.",
  },
  bad_auth_settings: {
    kind: "invalid",
    meaning: "The authentication settings cannot be used.",
    remedy: "Correct the settings as the message says.",
  },
  bad_token_request: {
    kind: "invalid",
    meaning: "A token cannot be created with these values.",
    remedy: "Correct the values as the message says.",
  },
  keys_unavailable: {
    kind: "unavailable",
    meaning: "The keys that verify tokens cannot be fetched.",
    remedy: "Check the key server and the network.",
  },
  // Connections
  invalid_url: {
    kind: "invalid",
    meaning: "The text is not an HTTP URL, or the URL holds a user name or password.",
    remedy: "Correct the URL.",
  },
  insecure_url: {
    kind: "forbidden",
    meaning: "The URL uses `http` for a host that is neither local nor allowed.",
    remedy: "Use `https`, or allow the host.",
  },
  blocked_address: {
    kind: "forbidden",
    meaning: "The address is in a range that Mailroom does not connect to.",
    remedy: "Allow the host if it is meant to be reached.",
  },
  blocked_redirect: {
    kind: "forbidden",
    meaning: "The redirect would send credentials or a body to another origin, or drop encryption.",
    remedy: "Use the final URL.",
  },
  too_many_redirects: {
    kind: "invalid",
    meaning: "The server redirects too often.",
    remedy: "Use the final URL.",
  },
  unresolved_host: {
    kind: "unavailable",
    meaning: "The host name cannot be resolved.",
    remedy: "Check the name and the resolver.",
  },
  unreachable: {
    kind: "unavailable",
    exit: 3,
    meaning: "The connection cannot be established, or it broke.",
    remedy: "Check the address, and that the server runs.",
  },
  tls_failed: {
    kind: "unavailable",
    meaning: "The certificate was rejected, or the TLS handshake failed.",
    remedy: "Check the certificate and its authority.",
  },
  timed_out: {
    kind: "unavailable",
    meaning: "The remote server did not answer in time.",
    remedy: "Retry later.",
  },
  response_too_large: {
    kind: "too_large",
    meaning: "The response is larger than allowed.",
    remedy: "Ask for less.",
  },
  bad_response: {
    kind: "unavailable",
    meaning: "The response is not a valid response of such a server.",
    remedy: "Check the URL.",
  },
  aborted: {
    kind: "unavailable",
    meaning: "The caller aborted the request, or the client was closed.",
    remedy: "Repeat the request if the result is still needed.",
  },
  invalid_allow_rule: {
    kind: "invalid",
    meaning: "The rule of the allow-list is not valid.",
    remedy: "Write `loopback`, a host, an address or a network, with an optional port.",
  },
  // Mailroom/client
  timeout: {
    kind: "unavailable",
    exit: 3,
    meaning: "The server did not answer within the time limit.",
    remedy: "Retry, or raise the time limit.",
  },
  stream_lost: {
    kind: "unavailable",
    meaning: "The event stream broke and could not be resumed.",
    remedy: "Follow the task again from the last event id.",
  },
  not_a_stream: {
    kind: "unavailable",
    meaning: "The server answered with something other than an event stream.",
    remedy: "Check the URL.",
  },
  refused: {
    kind: "conflict",
    meaning: "The server refused the request.",
    remedy: "Change the request as the message says.",
  },
  connection_lost: {
    kind: "unavailable",
    exit: 3,
    meaning: "The connection ended before the answer.",
    remedy: "Connect again.",
  },
  too_slow: {
    kind: "limited",
    meaning: "The client reads events slower than they arrive.",
    remedy: "Read faster, or follow fewer conversations.",
  },
  // Mesh
  already_initialized: {
    kind: "conflict",
    meaning: "This agent already has a key.",
    remedy: "Use the existing key, or replace it with `--force`.",
  },
  not_initialized: {
    kind: "not_found",
    meaning: "The data directory has no mesh agent.",
    remedy: "Run `mailroom mesh init` first.",
  },
  invalid_key_file: {
    kind: "invalid",
    meaning: "The key file is not valid, or other users can read it.",
    remedy: "Correct the file or its mode, or create a new key.",
  },
  invalid_identity: {
    kind: "invalid",
    meaning: "The agent id or the endpoint is not valid.",
    remedy: "Correct the value as the message says.",
  },
  invalid_name: {
    kind: "invalid",
    meaning: "The name of the swarm is not valid.",
    remedy: "Choose another name.",
  },
  invalid_message: {
    kind: "invalid",
    meaning: "The message cannot be sent.",
    remedy: "Correct the message as the text says.",
  },
  invalid_invite: {
    kind: "invalid",
    meaning: "The invite is not valid, or no longer valid.",
    remedy: "Ask for a new invite.",
  },
  invalid_state_file: {
    kind: "invalid",
    meaning: "The state file is not valid.",
    remedy: "Export it again.",
  },
  invalid_request: {
    kind: "invalid",
    exit: 2,
    meaning: "The arguments of the operation are not valid.",
    remedy: "Correct the arguments.",
  },
  swarm_not_found: {
    kind: "not_found",
    meaning: "This agent is not in the swarm.",
    remedy: "List the swarms with `mailroom mesh list`.",
  },
  ambiguous_swarm: {
    kind: "invalid",
    exit: 2,
    meaning: "It is not clear which swarm is meant.",
    remedy: "Name it with `--swarm`, or in the variable `SWARM_ID`.",
  },
  message_not_found: {
    kind: "not_found",
    meaning: "The inbox has no message with this id.",
    remedy: "List the inbox.",
  },
  member_not_found: {
    kind: "not_found",
    meaning: "The swarm has no such member or applicant.",
    remedy: "List the members.",
  },
  not_master: {
    kind: "forbidden",
    meaning: "Only the swarm's master can do this.",
    remedy: "Ask the master.",
  },
  is_master: {
    kind: "conflict",
    meaning: "The master cannot do this to itself.",
    remedy: "Hand the swarm over with `mesh transfer`, or end it with `mesh dissolve`.",
  },
  transfer_open: {
    kind: "conflict",
    exit: 4,
    meaning: "The swarm was offered to a member that has not answered.",
    remedy: "Wait for the answer, or kick the member.",
  },
  not_allowed: {
    kind: "forbidden",
    meaning: "The operation is not allowed here.",
    remedy: "Choose an operation that the message allows.",
  },
  pending: {
    kind: "unavailable",
    meaning: "The master has not approved the request yet.",
    remedy: "Ask again later with the same invite.",
  },
  join_refused: {
    kind: "forbidden",
    meaning: "The swarm did not admit this agent.",
    remedy: "Ask the master.",
  },
  peer_unreachable: {
    kind: "unavailable",
    exit: 3,
    meaning: "The peer cannot be reached.",
    remedy: "Retry later.",
  },
  name_taken: {
    kind: "conflict",
    meaning: "The name after the `@` of an address already belongs to another swarm, peer or extension.",
    remedy: "Choose another name or alias.",
  },
  alias_taken: {
    kind: "conflict",
    meaning: "The alias is in use.",
    remedy: "Choose another alias.",
  },
  bad_host: {
    kind: "invalid",
    meaning: "The server cannot listen on this host, or the agent cannot be served under it.",
    remedy: "Use an address of this machine.",
  },
  bad_listen: {
    kind: "invalid",
    exit: 2,
    meaning: "The listen address is not valid.",
    remedy: "Write it as host:port.",
  },
  mesh_listen: {
    kind: "unavailable",
    meaning: "The mesh listener cannot be started.",
    remedy: "Choose another address with `mesh.listen`.",
  },
  no_certificate: {
    kind: "invalid",
    meaning: "The mesh listener has no certificate.",
    remedy: "Set `mesh.cert` and `mesh.key` in mail.toml.",
  },
  // The command line
  usage: {
    kind: "invalid",
    exit: 2,
    meaning: "The command line is not valid.",
    remedy: "Run the command with `--help` for usage.",
  },
  unknown_command: {
    kind: "invalid",
    exit: 2,
    meaning: "The command does not exist.",
    remedy: "Enter `help` for a list.",
  },
  failure: {
    kind: "internal",
    meaning: "The command failed.",
    remedy: "Run it with `--debug` for the stack trace.",
  },
  interrupted: {
    kind: "unavailable",
    exit: 130,
    meaning: "The command was interrupted.",
    remedy: "Run it again.",
  },
  unwritten: {
    kind: "unavailable",
    exit: 75,
    meaning: "The server stopped while its store accepted no writes, and results were lost.",
    remedy: "Start the server again: acknowledged messages are kept.",
  },
  no_server: {
    kind: "unavailable",
    exit: 3,
    meaning: "No server is running.",
    remedy: "Start one with `mailroom server`, or name one with `--url`.",
  },
  no_control: {
    kind: "unavailable",
    meaning: "The server has no data directory, so it has no control socket.",
    remedy: "Set a data directory with `--data`.",
  },
  no_data: {
    kind: "not_found",
    meaning: "The data directory is empty.",
    remedy: "Start a server first, or name its directory with `--data`.",
  },
  mcp_unreachable: {
    kind: "unavailable",
    exit: 3,
    meaning: "The server's MCP endpoint cannot be used.",
    remedy: "Check that the server runs, and that the token is one of a user, admin or member.",
  },
  port_in_use: {
    kind: "conflict",
    meaning: "Another program uses the port.",
    remedy: "Choose another port with `--port`, or any free port with `--port 0`.",
  },
  port_refused: {
    kind: "forbidden",
    exit: 1,
    meaning: "This user may not listen on the port.",
    remedy: "Choose a port above 1023 with `--port`.",
  },
  not_owner: {
    kind: "forbidden",
    exit: 1,
    meaning: "Only the task's owner may do this.",
    remedy: "Name the owner with `--as`.",
  },
  ambiguous_task: {
    kind: "invalid",
    meaning: "Several callers have a task with this id.",
    remedy: "Name the task by its key.",
  },
  unknown_conversation: {
    kind: "not_found",
    meaning: "The conversation does not exist.",
    remedy: "List the conversations with `mailroom conversations list`.",
  },
} as const satisfies ErrorTable;

export const ERRORS = { ...PUBLIC_ERRORS, ...LOCAL_ERRORS };

export type PublicErrorCode = keyof typeof PUBLIC_ERRORS;
/** The code of every error: see `docs/errors.md`. */
export type ErrorCode = keyof typeof ERRORS;
