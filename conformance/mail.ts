/** The Multi-Agent Interface Layer, specification 1.2-pre2. */
import type { Part, Requirement } from "./requirement.js";

type Row = readonly [id: string, level: Requirement["level"], part: Part, rule: string];

function chapter(name: string, rows: readonly Row[]): Requirement[] {
  return rows.map(([id, level, part, rule]) => ({ id, level, part, rule, source: `MAIL 1.2-pre2: ${name}` }));
}

export const MAIL_REQUIREMENTS: readonly Requirement[] = [
  ...chapter("Conformance", [
    [
      "MAIL-CONF-01",
      "MUST",
      "engine",
      "Every message that is emitted validates against the published schemas.",
    ],
    [
      "MAIL-CONF-02",
      "MUST",
      "engine",
      "A message that comes in is checked for msg_type, id, timestamp and the required fields of its payload.",
    ],
    ["MAIL-CONF-03", "MUST", "server", "The HTTP transport does what its OpenAPI document says."],
    [
      "MAIL-CONF-04",
      "MUST",
      "federation",
      "Request and response wrappers from other swarms are accepted, and their payloads delivered.",
    ],
  ]),
  ...chapter("Data Model", [
    ["MAIL-DATA-01", "MUST", "engine", "MAILAddress has a type of four and an address, and nothing else."],
    ["MAIL-DATA-02", "MUST", "engine", "MAILRequest has its required fields and no unknown ones."],
    ["MAIL-DATA-03", "MUST", "engine", "MAILResponse has its required fields and no unknown ones."],
    ["MAIL-DATA-04", "MUST", "engine", "MAILBroadcast has at least one recipient and no unknown fields."],
    ["MAIL-DATA-05", "MUST", "engine", "MAILInterrupt has at least one recipient and no unknown fields."],
    ["MAIL-DATA-06", "MUST", "engine", "msg_type decides what the payload of a MAILMessage must be."],
    [
      "MAIL-DATA-07",
      "MUST",
      "engine",
      "MAILInterswarmMessage binds msg_type to its payload and names owner and contributors.",
    ],
  ]),
  ...chapter("Addressing", [
    ["MAIL-ADDR-01", "MUST", "engine", "Users and admins are addressed by their unique id."],
    ["MAIL-ADDR-02", "MUST", "engine", "Names of agents are unique within a swarm."],
    ["MAIL-ADDR-03", "MUST", "engine", "The message of task_complete goes to agent `all`."],
    ["MAIL-ADDR-04", "MUST", "engine", "No agent is called `all`."],
    ["MAIL-ADDR-05", "MUST", "engine", "The address of the system is the name of the local swarm."],
  ]),
  ...chapter("Message Semantics", [
    [
      "MAIL-PRIO-01",
      "MUST",
      "engine",
      "Mail is served by tier: system, people, interrupts, broadcasts, the rest.",
    ],
    ["MAIL-PRIO-02", "MUST", "engine", "Within a tier, mail is served in the order in which it came."],
    [
      "MAIL-RCPT-01",
      "MUST",
      "engine",
      "Requests and responses have one recipient, broadcasts and interrupts a list.",
    ],
    ["MAIL-RCPT-02", "MUST", "engine", "Recipient `all` means every agent of the local swarm."],
  ]),
  ...chapter("Tasks", [
    ["MAIL-TASK-01", "MUST", "engine", "Each task is identified by a task_id that is unique in its scope."],
    ["MAIL-TASK-02", "MUST", "engine", "A message with an unused task_id opens a task."],
    ["MAIL-TASK-03", "MUST", "engine", "Messages of a task are processed until task_complete is called."],
    ["MAIL-TASK-04", "MUST", "engine", "The finishing message is returned to the user."],
    [
      "MAIL-MULTI-01",
      "MUST",
      "engine",
      "A message to a completed task is processed until the task completes again.",
    ],
    ["MAIL-MULTI-02", "MUST", "engine", "Histories are kept by task and survive its completion."],
    [
      "MAIL-MULTI-03",
      "MUST",
      "engine",
      "The finishing message of a later round is returned to the user, too.",
    ],
    ["MAIL-OWN-01", "MUST", "engine", "Every task has an owner: the instance in which it was created."],
    ["MAIL-OWN-02", "MUST", "engine", "Every task has contributors, its owner among them."],
    ["MAIL-OWN-03", "MUST", "engine", "Owners and contributors are written `role:id@swarm`."],
    ["MAIL-INTER-01", "MUST", "federation", "A remote swarm works on a task under the same task_id."],
    ["MAIL-INTER-02", "MUST", "federation", "Interswarm messages carry task_owner and task_contributors."],
    [
      "MAIL-INTER-03",
      "MUST",
      "federation",
      "The finish message of a remote swarm returns to the instance that asked.",
    ],
    ["MAIL-INTER-04", "MUST", "federation", "When the owner completes, the contributing swarms are told."],
  ]),
  ...chapter("Routing Semantics", [
    ["MAIL-ROUTE-01", "SHOULD", "engine", "An agent reaches only its comm_targets."],
    [
      "MAIL-ROUTE-02",
      "MUST",
      "engine",
      "Without a qualifier, or with that of the local swarm, mail is delivered by name.",
    ],
    [
      "MAIL-ROUTE-03",
      "SHOULD",
      "engine",
      "Mail to an unknown local agent is not delivered, and its sender is told.",
    ],
    [
      "MAIL-ROUTE-04",
      "MUST",
      "federation",
      "Mail to `agent@swarm` is delivered to that agent of that swarm.",
    ],
    ["MAIL-ROUTE-05", "MUST", "engine", "The sender is told when a remote agent cannot be reached."],
  ]),
  ...chapter("MAIL Instances", [
    [
      "MAIL-INST-01",
      "MUST",
      "engine",
      "Each client has an instance of its own; instances never see each other.",
    ],
    [
      "MAIL-INST-02",
      "MUST",
      "engine",
      "An instance owns the tasks that were created in it and contributes to them.",
    ],
    ["MAIL-INST-03", "MUST", "federation", "All agents of a remote swarm share one instance."],
    ["MAIL-INST-04", "MUST", "federation", "Swarm instances adopt tasks and never create them."],
    ["MAIL-INST-05", "MUST", "federation", "User instances do not contribute to tasks of others."],
    ["MAIL-RUN-01", "MUST", "engine", "Histories are scoped by task."],
    ["MAIL-RUN-02", "SHOULD", "engine", "Nothing of one instance reaches the agents of another."],
    ["MAIL-ROUTER-01", "SHOULD", "federation", "There is one router per server, not one per instance."],
    ["MAIL-SERVER-01", "MUST", "server", "The server has every endpoint of the specification."],
  ]),
  ...chapter("MAIL Tools", [
    ["MAIL-TOOL-01", "MUST", "engine", "send_request sends a request to its target."],
    ["MAIL-TOOL-02", "MUST", "engine", "send_response sends a response to its target."],
    ["MAIL-TOOL-03", "MUST", "engine", "send_interrupt sends an interrupt to its target."],
    ["MAIL-TOOL-04", "MUST", "engine", "send_broadcast reaches every other agent of the swarm."],
    ["MAIL-TOOL-05", "MUST", "engine", "task_complete ends the task with its finish message."],
    [
      "MAIL-TOOL-06",
      "MUST",
      "engine",
      "acknowledge_broadcast keeps the broadcast in memory without an answer.",
    ],
    ["MAIL-TOOL-07", "MUST", "engine", "ignore_broadcast leaves no trace of the broadcast in memory."],
    ["MAIL-TOOL-08", "MUST", "engine", "await_message ends the turn until there is new mail."],
    ["MAIL-TOOL-09", "MUST", "engine", "Every call of a tool has a result that tells of success or failure."],
  ]),
  ...chapter("REST Transport", [
    ["MAIL-REST-01", "MUST", "server", "Protected endpoints ask for a bearer token and check its role."],
    ["MAIL-REST-02", "MUST", "server", "GET / tells name, version, swarm, status and uptime."],
    ["MAIL-REST-03", "MUST", "server", "GET /health tells status, swarm_name and timestamp."],
    ["MAIL-REST-04", "MUST", "server", "GET /status tells of the swarm and of the caller's instance."],
    ["MAIL-REST-05", "MUST", "server", "GET /whoami tells the caller's identity and role."],
    ["MAIL-REST-06", "MUST", "server", "POST /message runs a task and returns its final response."],
    ["MAIL-REST-07", "MUST", "server", "POST /message with stream sends events until completion."],
    ["MAIL-REST-08", "MUST", "server", "GET /swarms lists known swarms, without secrets."],
    ["MAIL-REST-09", "MUST", "federation", "POST /swarms registers a remote swarm; non-volatile ones stay."],
    ["MAIL-REST-10", "MUST", "server", "GET /swarms/dump and POST /swarms/load show and replace the swarm."],
    [
      "MAIL-REST-11",
      "MUST",
      "federation",
      "POST /interswarm/forward and /back take messages from other swarms.",
    ],
    [
      "MAIL-REST-12",
      "MUST",
      "federation",
      "POST /interswarm/message sends a person's message to other swarms.",
    ],
  ]),
  ...chapter("Swarm Registry", [
    ["MAIL-REG-01", "MUST", "federation", "Non-volatile entries are kept and loaded at the next start."],
    ["MAIL-REG-02", "SHOULD", "federation", "Tokens are stored as references to environment variables."],
    ["MAIL-REG-03", "SHOULD", "federation", "Swarms are checked periodically, and inactive ones are marked."],
  ]),
  ...chapter("Authentication and Authorization", [
    ["MAIL-AUTH-01", "MUST", "server", "Protected endpoints refuse callers without a token."],
    [
      "MAIL-AUTH-02",
      "SHOULD",
      "server",
      "Tokens stand for a role and an identity, which choose the instance.",
    ],
  ]),
  ...chapter("Error Handling", [
    [
      "MAIL-ERR-01",
      "MUST",
      "engine",
      "A run-time error becomes a system response, a system broadcast or a system completion.",
    ],
    ["MAIL-ERR-02", "SHOULD", "engine", "System messages are easy to tell from agents' mail."],
    [
      "MAIL-ERR-03",
      "MUST",
      "federation",
      "An error while receiving interswarm mail is answered with a status other than 200.",
    ],
    [
      "MAIL-ERR-04",
      "SHOULD",
      "engine",
      "An error while sending to another swarm comes back as a system message.",
    ],
    ["MAIL-ERR-05", "MUST", "server", "Missing authentication is 401."],
    ["MAIL-ERR-06", "MUST", "server", "A malformed request is 400."],
    ["MAIL-ERR-07", "MUST", "server", "An unexpected error is 500."],
  ]),
  ...chapter("Security Considerations", [
    ["MAIL-SEC-01", "MUST", "federation", "Interswarm traffic uses TLS."],
    ["MAIL-SEC-02", "MUST", "federation", "Incoming payloads are validated before they are processed."],
    [
      "MAIL-SEC-03",
      "SHOULD",
      "server",
      "Public endpoints are rate-limited, and changing the registry is for admins.",
    ],
    ["MAIL-SEC-04", "SHOULD", "federation", "No secret is written to the registry."],
  ]),
  ...chapter("ours", [
    ["MAIL-OURS-01", "ours", "engine", "Nothing acknowledged is lost when the process dies at any instant."],
    ["MAIL-OURS-02", "ours", "engine", "An action that finished is never run again."],
    ["MAIL-OURS-03", "ours", "engine", "An agent does one thing at a time in a task."],
    ["MAIL-OURS-04", "ours", "engine", "Text from others cannot forge a message that is shown to an agent."],
  ]),
];
