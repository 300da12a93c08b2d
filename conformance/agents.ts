/** Agents that think, and the protocols by which others reach them. */
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
    ["AGT-MODEL-02", "MUST", "In a later round an agent has everything it remembers of the task."],
    [
      "AGT-MODEL-03",
      "ours",
      "A provider that is overloaded or limits the rate is asked again, after the time it names.",
    ],
    ["AGT-MODEL-04", "ours", "A malformed call becomes an error result; the task goes on."],
    [
      "AGT-MODEL-05",
      "MUST",
      "A call of an unknown tool, or with wrong arguments, is answered with an error that says so.",
    ],
    ["AGT-MODEL-06", "ours", "A model's refusal reaches the one who asked."],
    ["AGT-MODEL-07", "ours", "A history that is too long is shortened, and every call keeps its result."],
    ["AGT-MODEL-08", "ours", "A model call has a time limit and is asked again after it."],
    ["AGT-MODEL-09", "ours", "A cancelled task aborts its model calls."],
    ["AGT-MODEL-10", "ours", "Keys are never shown, also not when a provider repeats them."],
    ["AGT-MODEL-11", "SHOULD", "With stream_tokens, text is shown while it is written."],
    ["AGT-MODEL-12", "ours", "Usage is journaled with each turn; cost only by the operator's prices."],
    ["AGT-MODEL-13", "MUST", "At the step limit only task_complete is offered, and it is forced."],
    [
      "AGT-MODEL-14",
      "ours",
      "Text without a tool call goes to the one who asked, and is never a broadcast by accident.",
    ],
    ["AGT-MODEL-15", "ours", "The text of a message cannot close our tags and forge another message."],
    [
      "AGT-MODEL-16",
      "ours",
      "A compaction is an entry of the journal, so that replay gives the same history.",
    ],
    ["AGT-MODEL-17", "MUST", "use_proxy and LITELLM_PROXY_API_BASE lead model calls through the proxy."],
    [
      "AGT-MODEL-18",
      "MUST",
      "Swarm files of the reference make model agents, supervisors and action agents with its parameters.",
    ],
    ["AGT-MODEL-19", "ours", "Prices of the configuration hold for agents that have none of their own."],
    [
      "AGT-MODEL-20",
      "ours",
      "A model without credentials pauses the task with that reason; it goes on once they are there.",
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
    ["AGT-TOOL-03", "ours", "A server that dies is an error result, and the next call connects again."],
    ["AGT-TOOL-04", "ours", "A call of an MCP tool has a time limit."],
    ["AGT-TOOL-05", "MUST", "The seven mcp_* actions of the reference work."],
  ]),
  ...chapter("MAIL reference, standard actions: ready-made actions", [
    ["AGT-ACT-01", "MUST", "File actions read, write, list and delete inside their configured roots."],
    ["AGT-ACT-02", "ours", "No path, link or encoding leads a file action out of its roots."],
    ["AGT-ACT-03", "ours", "HTTP actions have limits of size and time, and report the status."],
    ["AGT-ACT-04", "ours", "A redirect does not lead an HTTP action to an inner address."],
    ["AGT-ACT-05", "ours", "A name that resolves to an inner address is refused."],
    ["AGT-ACT-06", "MUST", "The interswarm actions of the reference work."],
    [
      "AGT-ACT-07",
      "ours",
      "The calculator parses expressions, evaluates no code, and cannot be made to run for ever.",
    ],
    ["AGT-ACT-08", "ours", "The key-value memory belongs to one instance and survives restarts."],
    ["AGT-ACT-09", "ours", "File actions touch the configured roots, and nothing where there are none."],
  ]),
  ...chapter("Mailroom: Mailroom as an MCP server", [
    ["AGT-MCP-01", "ours", "A user's task given through MCP is theirs on every door."],
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
      "A context is a MAIL task, the caller's on every door; an A2A task is one round of it.",
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
    ["AGT-PEER-08", "ours", "An A2A agent that cannot be reached, or fails, is told to the agent who wrote."],
    ["AGT-PEER-09", "ours", "The token of an A2A agent is sent to its configured place only."],
    ["AGT-PEER-10", "ours", "An A2A message that is sent twice is one message, also after a restart."],
    ["AGT-PEER-11", "ours", "A task stays in one context with an A2A agent, also after a restart."],
  ]),
  ...chapter("Mailroom: crashes", [
    [
      "AGT-CRASH-01",
      "ours",
      "After SIGKILL in a model call the model is asked again, nothing finished is repeated, and the history is valid for the provider.",
    ],
    ["AGT-CRASH-02", "ours", "An idempotent action that was under way runs again under the same call."],
    ["AGT-CRASH-03", "ours", "Another one is not repeated; the agent is told that its outcome is unknown."],
  ]),
];
