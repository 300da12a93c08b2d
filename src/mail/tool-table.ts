/** MAIL: MAIL Tools, as a table: purpose and parameters. Specs, checks and help are derived from it. */

export const MAIL_TOOL_NAMES = [
  "send_request",
  "send_response",
  "send_interrupt",
  "send_broadcast",
  "task_complete",
  "acknowledge_broadcast",
  "ignore_broadcast",
  "await_message",
  "help",
  "send_interswarm_broadcast",
  "discover_swarms",
] as const;

/** The name of a MAIL tool. */
export type MailToolName = (typeof MAIL_TOOL_NAMES)[number];

/** Whether a name is that of a MAIL tool. */
export function isMailToolName(name: string): name is MailToolName {
  return MAIL_TOOL_NAMES.some((known) => known === name);
}

/**
 * - `target`: an agent's address
 * - `text`, `texts`, `flag`, `tools`: a string, a list of strings, a boolean, a list of MAIL tools
 */
export type ParameterKind = "target" | "text" | "texts" | "flag" | "tools";

export interface Parameter {
  readonly kind: ParameterKind;
  /** May be absent or `null`. */
  readonly optional?: true;
  readonly description: string;
}

export interface ToolEntry {
  readonly description: string;
  readonly parameters: Readonly<Record<string, Parameter>>;
  /** An example call, for the help text. */
  readonly example: Readonly<Record<string, unknown>>;
}

const SUBJECT: Parameter = { kind: "text", description: "A short line that says what the message is about." };
const BODY: Parameter = { kind: "text", description: "The message itself." };

export const MAIL_TOOLS: Readonly<Record<MailToolName, ToolEntry>> = {
  send_request: {
    description:
      "Send a request to one agent. The result only says that it was sent; the answer comes later as a new message.",
    parameters: {
      target: { kind: "target", description: "The agent that should do something." },
      subject: SUBJECT,
      body: BODY,
    },
    example: { target: "librarian", subject: "Older book", body: "Which of these two books is older? …" },
  },
  send_response: {
    description: "Answer a request of another agent.",
    parameters: {
      target: { kind: "target", description: "The agent whose request is answered." },
      subject: SUBJECT,
      body: BODY,
    },
    example: { target: "supervisor", subject: "Re: Older book", body: "The second one: it is from 1851." },
  },
  send_interrupt: {
    description:
      "Send a message that goes before the other mail of its recipient, for something that changes its work at once.",
    parameters: {
      target: { kind: "target", description: "The agent that must see this first." },
      subject: SUBJECT,
      body: BODY,
    },
    example: {
      target: "librarian",
      subject: "Stop",
      body: "The question was withdrawn; do not search further.",
    },
  },
  send_broadcast: {
    description: "Send a message to every agent of the swarm, or to those you name. No answer is required.",
    parameters: {
      subject: SUBJECT,
      body: BODY,
      targets: { kind: "texts", optional: true, description: "Agents to send to; every agent if left out." },
    },
    example: { subject: "Catalogue is read-only", body: "Do not try to edit entries until noon." },
  },
  task_complete: {
    description:
      "End the task. The finish message is the answer that the user gets, so it must stand on its own. Call this once, " +
      "when nothing is left to do.",
    parameters: {
      finish_message: { kind: "text", description: "The complete answer for the user." },
    },
    example: { finish_message: "The second book is older: it was printed in 1851." },
  },
  acknowledge_broadcast: {
    description: "Keep the broadcast in your memory without answering it.",
    parameters: {
      note: { kind: "text", optional: true, description: "A note to yourself about the broadcast." },
    },
    example: { note: "No edits before noon." },
  },
  ignore_broadcast: {
    description: "Drop the broadcast: no answer, and it does not stay in your memory.",
    parameters: {
      reason: { kind: "text", optional: true, description: "Why it does not concern you." },
    },
    example: { reason: "I never edit the catalogue." },
  },
  await_message: {
    description:
      "End your turn and wait for mail. Use it when everything you can do now is done and an answer is still to come.",
    parameters: {
      reason: { kind: "text", optional: true, description: "What you are waiting for." },
    },
    example: { reason: "waiting for the librarian's answer" },
  },
  help: {
    description: "Ask how MAIL works, who you are in it, and how its tools are used.",
    parameters: {
      get_summary: { kind: "flag", optional: true, description: "A short account of MAIL (default true)." },
      get_identity: { kind: "flag", optional: true, description: "Your name and addresses (default false)." },
      get_tool_help: {
        kind: "tools",
        optional: true,
        description: "MAIL tools to explain, each with an example.",
      },
      get_full_protocol: {
        kind: "flag",
        optional: true,
        description: "The rules of MAIL in full (default false).",
      },
    },
    example: { get_summary: false, get_tool_help: ["send_request"] },
  },
  send_interswarm_broadcast: {
    description: "Send a message to every agent of other swarms.",
    parameters: {
      subject: SUBJECT,
      body: BODY,
      target_swarms: {
        kind: "texts",
        optional: true,
        description: "Swarms to send to; all known ones if left out.",
      },
    },
    example: { subject: "Stocktaking", body: "We answer slowly today.", target_swarms: ["weather"] },
  },
  discover_swarms: {
    description: "Look for other swarms at the given addresses and make those that are found known here.",
    parameters: {
      discovery_urls: { kind: "texts", description: "Web addresses of servers that list swarms." },
    },
    example: { discovery_urls: ["https://weather.example/swarms"] },
  },
};
