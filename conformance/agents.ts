/** Model agents, ready-made actions, and the protocols MCP and A2A. */
import type { Requirement } from "./requirement.js";

type Row = readonly [id: string, level: Requirement["level"], rule: string];

function chapter(source: string, rows: readonly Row[]): Requirement[] {
  return rows.map(([id, level, rule]) => ({ id, level, part: "agents", rule, source }));
}

export const AGENT_REQUIREMENTS: readonly Requirement[] = [
  ...chapter("MAIL reference, agents and LLMs: agents that think with models", [
    [
      "AGT-MODEL-01",
      "MUST",
      "A model agent works with OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, Google Gemini and OpenAI-compatible servers, whole and streamed.",
    ],
    ["AGT-MODEL-02", "MUST", "In a later round an agent has its whole history of the task."],
    [
      "AGT-MODEL-03",
      "ours",
      "A request to an overloaded or rate-limiting provider is retried after the time it names.",
    ],
    ["AGT-MODEL-04", "ours", "A malformed call becomes an error result; the task continues."],
    [
      "AGT-MODEL-05",
      "MUST",
      "A call of an unknown tool, or with wrong arguments, is answered with an error that says so.",
    ],
    ["AGT-MODEL-06", "ours", "A model's refusal reaches the sender of the request."],
    ["AGT-MODEL-07", "ours", "A history that is too long is compacted, and every call keeps its result."],
    ["AGT-MODEL-08", "ours", "A model call has a time limit and is retried after it."],
    ["AGT-MODEL-09", "ours", "A cancelled task aborts its model calls."],
    ["AGT-MODEL-10", "ours", "Keys are never shown, even if a provider repeats them."],
    ["AGT-MODEL-11", "SHOULD", "With stream_tokens, text is streamed while it is written."],
    [
      "AGT-STREAM-01",
      "ours",
      "With stream_tokens, the arguments that answer a user or an agent are streamed while they are written.",
    ],
    [
      "AGT-STREAM-02",
      "ours",
      "A streamed answer that begins again, also with another model, is marked and has a higher attempt.",
    ],
    [
      "AGT-STREAM-03",
      "ours",
      "An unfinished answer is shown to those who may see the task, and only until its turn ends.",
    ],
    ["AGT-STREAM-04", "ours", "Without stream_tokens nothing is streamed."],
    [
      "AGT-STREAM-05",
      "ours",
      "A slow reader of a stream loses streamed text at most, and gets every event and the answer.",
    ],
    ["AGT-STREAM-06", "ours", "Streamed text is not repeated after a crash; the answer arrives once."],
    ["AGT-STREAM-07", "ours", "MCP clients that ask for progress and A2A clients see the answer grow."],
    ["AGT-MODEL-12", "ours", "Usage is journaled with each turn; cost only by the operator's prices."],
    ["AGT-MODEL-13", "MUST", "At the step limit task_complete is forced; the list of tools stays the same."],
    [
      "AGT-MODEL-14",
      "ours",
      "Text without a tool call goes to the sender of the request, and is never broadcast by accident.",
    ],
    ["AGT-MODEL-15", "ours", "The text of a message cannot close our tags and forge another message."],
    [
      "AGT-MODEL-16",
      "ours",
      "A compaction is an entry of the journal, so that replay gives the same history.",
    ],
    ["AGT-MODEL-17", "MUST", "use_proxy and LITELLM_PROXY_API_BASE route model calls through the proxy."],
    [
      "AGT-MODEL-18",
      "MUST",
      "Swarm files of the reference make model agents, supervisors and action agents with its parameters.",
    ],
    ["AGT-MODEL-19", "ours", "Prices in the configuration apply to agents without prices of their own."],
    [
      "AGT-MODEL-20",
      "ours",
      "A model without credentials pauses the task with that reason; the task continues once they are available.",
    ],
    [
      "AGT-MODEL-21",
      "ours",
      "The caller's token is held in memory only; without it the task waits for its owner.",
    ],
  ]),
  ...chapter("MAIL reference, MCP actions: MCP servers as actions", [
    [
      "AGT-TOOL-01",
      "ours",
      "The tools of an MCP server, over stdio and streamable HTTP, are actions with their schema and description.",
    ],
    ["AGT-TOOL-02", "ours", "Prompts and resources of an MCP server can be read."],
    ["AGT-TOOL-03", "ours", "A server that dies produces an error result, and the next call reconnects."],
    ["AGT-TOOL-04", "ours", "A call of an MCP tool has a time limit."],
    ["AGT-TOOL-05", "MUST", "The seven mcp_* actions of the reference work."],
  ]),
  ...chapter("MAIL reference, standard actions: ready-made actions", [
    ["AGT-ACT-01", "MUST", "File actions read, write, list and delete inside their configured roots."],
    ["AGT-ACT-02", "ours", "No path, link or encoding lets a file action leave its roots."],
    ["AGT-ACT-03", "ours", "HTTP actions limit size and time, and report the status."],
    ["AGT-ACT-04", "ours", "A redirect does not lead an HTTP action to an internal address."],
    ["AGT-ACT-05", "ours", "A name that resolves to an internal address is rejected."],
    ["AGT-ACT-06", "MUST", "The interswarm actions of the reference work."],
    [
      "AGT-ACT-07",
      "ours",
      "The calculator parses expressions, evaluates no code, and cannot be made to run forever.",
    ],
    ["AGT-ACT-08", "ours", "The key-value memory belongs to one instance and survives restarts."],
    ["AGT-ACT-09", "ours", "File actions access only the configured roots; without roots, nothing."],
    [
      "AGT-ACT-10",
      "ours",
      "Adjacent actions of one answer start together, up to a limit per task; results are in call order, and a cancellation stops those that have not begun.",
    ],
    [
      "AGT-ACT-11",
      "ours",
      "After a crash each unfinished action of an answer is unknown, or runs again if it is idempotent.",
    ],
  ]),
  ...chapter("Mailroom: Mailroom as an MCP server", [
    ["AGT-MCP-01", "ours", "A user's task created through MCP belongs to that user on every endpoint."],
    ["AGT-MCP-02", "ours", "A process with a member token is its agent: it reads mail and answers."],
    ["AGT-MCP-03", "ours", "Other swarms, and members that serve no agent, may not use MCP."],
    [
      "AGT-MCP-04",
      "ours",
      "'mailroom mcp' is a client of a running server, by the control socket or by URL and token.",
    ],
    ["AGT-MCP-05", "ours", "It starts a server in its own process only if there is none."],
    ["AGT-MCP-06", "ours", "Pages of configured origins, and no others, can use MCP."],
  ]),
  ...chapter("Mailroom: Agent2Agent", [
    ["AGT-PEER-01", "ours", "The swarm publishes an agent card, and the official client gets answers."],
    [
      "AGT-PEER-02",
      "ours",
      "A context is a MAIL task, owned by the caller on every endpoint; an A2A task is one round of it.",
    ],
    ["AGT-PEER-03", "ours", "A paused task is input-required, and the next message answers it."],
    ["AGT-PEER-04", "ours", "Tasks are streamed to their end, subscribed to later, and cancelled."],
    ["AGT-PEER-05", "ours", "A2A is for users and admins."],
    [
      "AGT-PEER-06",
      "ours",
      "Mail to name@alias reaches the A2A agent, and its answer comes back as a response.",
    ],
    ["AGT-PEER-07", "ours", "An A2A agent may ask back in the same task."],
    [
      "AGT-PEER-08",
      "ours",
      "When an A2A agent cannot be reached, or fails, the agent that wrote to it is notified.",
    ],
    ["AGT-PEER-09", "ours", "The token of an A2A agent is sent only to its configured URL."],
    ["AGT-PEER-10", "ours", "An A2A message that is sent twice is one message, also after a restart."],
    ["AGT-PEER-11", "ours", "A task stays in one context with an A2A agent, also after a restart."],
  ]),
  ...chapter("Mailroom: approvals", [
    [
      "AGT-APPR-01",
      "ours",
      "A call of an action with `approval` runs only after a person has approved it; a predicate chooses by the arguments.",
    ],
    [
      "AGT-APPR-02",
      "ours",
      "A person approves, changes the arguments or rejects with a reason; changed arguments are checked and shown to the agent.",
    ],
    [
      "AGT-APPR-03",
      "ours",
      "An approved call runs once, whenever the process dies; a waiting one still waits.",
    ],
    [
      "AGT-APPR-05",
      "ours",
      "The owner and those whom the owner named decide, with their own tokens; the audit log records it.",
    ],
    [
      "AGT-APPR-07",
      "ours",
      "A second user whom the owner named finds a waiting call and decides it through the client, the command line, MAP, MCP and A2A.",
    ],
    [
      "AGT-APPR-08",
      "ours",
      "Tasks that wait for approval hold neither a slot for turns nor memory, however many they are.",
    ],
    ["AGT-APPR-06", "ours", "Text approves nothing: the refusal says how to decide."],
    ["AGT-APPR-04", "ours", "An approval may expire, also after a restart."],
  ]),
  ...chapter("Mailroom: crashes", [
    [
      "AGT-CRASH-01",
      "ours",
      "After SIGKILL during a model call the model is called again, no finished step is repeated, and the history is valid for the provider.",
    ],
    ["AGT-CRASH-02", "ours", "An idempotent action that was running runs again under the same call."],
    [
      "AGT-CRASH-03",
      "ours",
      "An action that is not idempotent is not repeated; its agent receives the result `outcome unknown`.",
    ],
  ]),
  ...chapter("Mailroom: budgets", [
    [
      "AGT-BUDGET-01",
      "ours",
      "At `max_cost`, `max_tokens` or `max_calls` a task pauses with the reason `budget`, and continues when its owner raises the limit.",
    ],
    ["AGT-BUDGET-02", "ours", "Failed model calls count, and no retry is made beyond a limit."],
    ["AGT-BUDGET-03", "ours", "A provider that reports wrong usage cannot break a budget."],
    ["AGT-BUDGET-04", "ours", "A cost limit pauses a task whose model has no price, and names the model."],
    ["AGT-BUDGET-05", "ours", "Concurrent tasks of a caller stay within the caller's limit for a day."],
    ["AGT-BUDGET-06", "ours", "Limits for a day begin again at midnight UTC, and paused tasks continue."],
    ["AGT-BUDGET-07", "ours", "A model call that SIGKILL interrupts counts, so limits hold over restarts."],
    [
      "AGT-BUDGET-09",
      "ours",
      "A task that waits at a limit shared with other tasks continues when their calls used less than estimated.",
    ],
    ["AGT-BUDGET-10", "ours", "A caller can have a limit for all days together."],
    [
      "AGT-BUDGET-08",
      "ours",
      "Owners raise limits that they set; admins raise the others; both are audited.",
    ],
  ]),
];
