/** The output of the `help` tool. */
import { formatAgentAddress } from "./address.js";
import { PROTOCOL_TEXT, SUMMARY_TEXT } from "./help-texts.js";
import type { HelpArguments } from "./tool-arguments.js";
import { isMailToolName, MAIL_TOOL_NAMES, MAIL_TOOLS, type MailToolName } from "./tool-table.js";

export interface HelpReader {
  readonly agent: string;
  readonly swarm: string;
}

/** Returns the requested sections. Never throws: unknown names are reported in the text. */
export function buildHelp(reader: HelpReader, asked: Partial<HelpArguments> = {}): string {
  const { get_summary = true, get_identity = false, get_tool_help = [], get_full_protocol = false } = asked;
  const sections: string[] = [];
  if (get_summary) sections.push(section("Summary", SUMMARY_TEXT));
  if (get_identity) sections.push(section("Your identity", identity(reader)));
  if (get_tool_help.length > 0) sections.push(section("Tool help", toolHelp(get_tool_help)));
  if (get_full_protocol) sections.push(section("The MAIL protocol", PROTOCOL_TEXT));
  if (sections.length === 0) {
    sections.push(
      section(
        "Help",
        "You asked for nothing. Set get_summary, get_identity or get_full_protocol to true, or name tools in get_tool_help.",
      ),
    );
  }
  return sections.join("\n\n");
}

/** Returns the usage of one MAIL tool. */
export function toolHelpText(name: MailToolName): string {
  const { description, parameters, example } = MAIL_TOOLS[name];
  const lines = [`${name}: ${description}`, "Parameters:"];
  for (const [key, parameter] of Object.entries(parameters)) {
    lines.push(`- ${key}${parameter.optional ? " (optional)" : ""}: ${parameter.description}`);
  }
  lines.push(`Example: ${name}(${JSON.stringify(example)})`);
  return lines.join("\n");
}

function section(title: string, text: string): string {
  return `===== ${title.toUpperCase()} =====\n${text}`;
}

function identity({ agent, swarm }: HelpReader): string {
  return [
    `Your name: ${agent}`,
    `Your swarm: ${swarm}`,
    `Your address for agents of this swarm: ${agent}`,
    `Your address for agents of other swarms: ${formatAgentAddress(agent, swarm)}`,
  ].join("\n");
}

function toolHelp(names: readonly string[]): string {
  return [...new Set(names)]
    .map((name) => {
      if (isMailToolName(name)) return toolHelpText(name);
      return `${name}: there is no MAIL tool of this name. The MAIL tools are ${MAIL_TOOL_NAMES.join(", ")}.`;
    })
    .join("\n\n");
}
