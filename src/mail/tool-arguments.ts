/**
 * Checks the arguments of MAIL tools. They come from models and remote agents, so they may contain anything.
 * Hand-written because this is a hot path: every message of an agent passes here.
 */
import { isRecord } from "../base/index.js";
import { MAIL_TOOLS, type MailToolName } from "./tool-table.js";

export interface MessageArguments {
  readonly target: string;
  readonly subject: string;
  readonly body: string;
}

export interface HelpArguments {
  readonly get_summary: boolean;
  readonly get_identity: boolean;
  readonly get_tool_help: readonly string[];
  readonly get_full_protocol: boolean;
}

/** Arguments of each tool, with defaults. */
export interface MailToolArguments {
  readonly send_request: MessageArguments;
  readonly send_response: MessageArguments;
  readonly send_interrupt: MessageArguments;
  readonly send_broadcast: {
    readonly subject: string;
    readonly body: string;
    /** Absent: all agents. Never empty. */
    readonly targets?: readonly string[];
  };
  readonly task_complete: { readonly finish_message: string };
  readonly acknowledge_broadcast: { readonly note?: string };
  readonly ignore_broadcast: { readonly reason?: string };
  readonly await_message: { readonly reason?: string };
  readonly help: HelpArguments;
  readonly send_interswarm_broadcast: {
    readonly subject: string;
    readonly body: string;
    /** Empty: every known swarm. */
    readonly target_swarms: readonly string[];
  };
  readonly discover_swarms: { readonly discovery_urls: readonly string[] };
}

export type ArgumentCheck<T> =
  | { readonly ok: true; readonly value: T }
  /** `message` names the parameter and can be shown to the agent. */
  | { readonly ok: false; readonly message: string };

/** Checks arguments. Optional parameters may be absent or null; unknown parameters are an error. */
export function checkToolArguments<T extends MailToolName>(
  tool: T,
  args: unknown,
): ArgumentCheck<MailToolArguments[T]> {
  if (!isRecord(args)) {
    return { ok: false, message: `${tool}: the arguments must be an object` };
  }
  const { parameters } = MAIL_TOOLS[tool];
  for (const key of Object.keys(args)) {
    if (!Object.hasOwn(parameters, key)) {
      return {
        ok: false,
        message: `${tool}: there is no parameter ${JSON.stringify(key)}${known(parameters)}`,
      };
    }
  }
  const reader = new ArgumentReader(args);
  const value = READERS[tool](reader);
  if (reader.problem !== undefined) return { ok: false, message: `${tool}: ${reader.problem}` };
  return { ok: true, value };
}

function known(parameters: Readonly<Record<string, unknown>>): string {
  return `; it takes ${Object.keys(parameters).join(", ")}`;
}

type Readers = { readonly [T in MailToolName]: (args: ArgumentReader) => MailToolArguments[T] };

const READERS: Readers = {
  send_request: readMessage,
  send_response: readMessage,
  send_interrupt: readMessage,
  send_broadcast: (args) => {
    const content = { subject: args.text("subject"), body: args.text("body") };
    const targets = args.optionalTexts("targets");
    return targets.length === 0 ? content : { ...content, targets };
  },
  task_complete: (args) => ({ finish_message: args.text("finish_message") }),
  acknowledge_broadcast: (args) => {
    const note = args.optionalText("note");
    return note === undefined ? {} : { note };
  },
  ignore_broadcast: readReason,
  await_message: readReason,
  help: (args) => ({
    get_summary: args.flag("get_summary", true),
    get_identity: args.flag("get_identity", false),
    get_tool_help: args.optionalTexts("get_tool_help"),
    get_full_protocol: args.flag("get_full_protocol", false),
  }),
  send_interswarm_broadcast: (args) => ({
    subject: args.text("subject"),
    body: args.text("body"),
    target_swarms: args.optionalTexts("target_swarms"),
  }),
  discover_swarms: (args) => ({ discovery_urls: args.texts("discovery_urls") }),
};

function readMessage(args: ArgumentReader): MessageArguments {
  return { target: args.filledText("target"), subject: args.text("subject"), body: args.text("body") };
}

function readReason(args: ArgumentReader): { readonly reason?: string } {
  const reason = args.optionalText("reason");
  return reason === undefined ? {} : { reason };
}

/** Reads typed values and records the first problem, after which the values are unusable. */
class ArgumentReader {
  problem: string | undefined;
  readonly #args: Readonly<Record<string, unknown>>;

  constructor(args: Readonly<Record<string, unknown>>) {
    this.#args = args;
  }

  text(name: string): string {
    const value = this.#args[name];
    if (typeof value === "string") return value;
    this.#fail(value === undefined || value === null ? `${name} is missing` : `${name} must be a string`);
    return "";
  }

  filledText(name: string): string {
    const value = this.text(name).trim();
    if (value === "") this.#fail(`${name} must not be empty`);
    return value;
  }

  optionalText(name: string): string | undefined {
    const value = this.#args[name];
    if (value === undefined || value === null) return undefined;
    return this.text(name);
  }

  texts(name: string): readonly string[] {
    const list = this.#args[name];
    if (list === undefined || list === null) this.#fail(`${name} is missing`);
    const read = this.optionalTexts(name);
    if (read.length === 0) this.#fail(`${name} must not be empty`);
    return read;
  }

  optionalTexts(name: string): readonly string[] {
    const value = this.#args[name];
    if (value === undefined || value === null) return [];
    if (isListOfFilledStrings(value)) return value;
    this.#fail(`${name} must be a list of strings that are not empty`);
    return [];
  }

  flag(name: string, ifAbsent: boolean): boolean {
    const value = this.#args[name];
    if (value === undefined || value === null) return ifAbsent;
    if (typeof value === "boolean") return value;
    this.#fail(`${name} must be true or false`);
    return ifAbsent;
  }

  #fail(problem: string): void {
    this.problem ??= problem;
  }
}

function isListOfFilledStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string" && item.trim() !== "");
}
