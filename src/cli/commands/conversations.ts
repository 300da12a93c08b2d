/** `mailroom conversations`: what was said, by people and agents, in tasks and beside them. */
import {
  type Conversation,
  ConversationClient,
  ConversationError,
  type ConversationEvent,
  type Turn,
} from "../../client/index.js";
import { interruptible } from "../connect.js";
import { requireLocalServer } from "../control/patience.js";
import { noServerOn } from "../control/reach.js";
import { CliError, EXIT, type ExitCode } from "../exit.js";
import { type MapOptions, wayToMap } from "../map-socket.js";
import { harmless, type Terminal } from "../terminal.js";

/** The protocol's number for a conversation that is not there, or not for the caller to see. */
const NO_SUCH_CONVERSATION = 10000;

export async function listConversations(options: MapOptions, terminal: Terminal): Promise<ExitCode> {
  return withClient(undefined, options, terminal, async (client) => {
    const all: Conversation[] = [];
    for await (const conversation of client.list()) all.push(conversation);
    if (options.json === true) terminal.json({ conversations: all });
    else for (const one of all) terminal.out(harmless(lineOf(one)));
    return EXIT.ok;
  });
}

export async function showConversation(
  wanted: string,
  options: MapOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  return withClient(wanted, options, terminal, async (client) => {
    const details = await client.get(wanted);
    const turns: Turn[] = [];
    for await (const turn of client.turns(wanted)) turns.push(turn);
    if (options.json === true) {
      terminal.json({ ...details, turns });
      return EXIT.ok;
    }
    terminal.out(terminal.colours.bold(harmless(lineOf(details.conversation))));
    terminal.out(harmless(`with ${details.participants.map(({ id }) => id).join(", ")}`));
    for (const turn of turns) showTurn(turn, terminal);
    return EXIT.ok;
  });
}

export async function followConversations(
  wanted: string | undefined,
  options: MapOptions & { readonly after?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withClient(wanted, options, terminal, async (client, signal) => {
    const { after } = options;
    // A filter that fits nothing is no mistake to the server; here it would be a wait without end.
    if (wanted !== undefined) await client.get(wanted);
    const events = await client.follow({
      signal,
      ...(wanted !== undefined && { conversationId: wanted }),
      ...(after !== undefined && { after }),
    });
    for await (const event of events) {
      if (options.json === true) terminal.json(event);
      else showEvent(event, terminal);
    }
    return EXIT.ok;
  });
}

async function withClient(
  wanted: string | undefined,
  options: MapOptions,
  terminal: Terminal,
  work: (client: ConversationClient, signal: AbortSignal) => Promise<ExitCode>,
): Promise<ExitCode> {
  const say = (line: string) => terminal.note(line);
  const way = await wayToMap(options, terminal, (data) => requireLocalServer(data, say));
  if (way.url === undefined) throw noServerOn(way.data);
  const { url } = way;
  const { signal, release } = interruptible();
  try {
    // The socket brings its own credential.
    const client = await ConversationClient.connect(url, { open: () => way.open() });
    try {
      return await work(client, signal);
    } finally {
      client.close();
    }
  } catch (error) {
    if (!(error instanceof ConversationError)) throw error;
    throw failureOf(error, wanted);
  } finally {
    release();
  }
}

function failureOf(error: ConversationError, wanted: string | undefined): CliError {
  if (error.number === NO_SUCH_CONVERSATION && wanted !== undefined) {
    return new CliError("unknown_conversation", `there is no conversation '${wanted}'`, {
      hint: "'mailroom conversations list' shows those there are",
      cause: error,
    });
  }
  const exit = error.code === "refused" ? EXIT.failure : EXIT.unreachable;
  return new CliError(error.code, error.message, { exit, cause: error });
}

function lineOf({ id, type, status, subject, createdBy, metadata }: Conversation): string {
  const task = typeof metadata.task_id === "string" ? `  task ${metadata.task_id}` : "";
  return `${id}  ${type}  ${status}  ${createdBy}${task}${subject === undefined ? "" : `  ${subject}`}`;
}

function showEvent({ type, data, source }: ConversationEvent, terminal: Terminal): void {
  const { turn } = data;
  if (type === "mail.turn.added" && isTurn(turn)) showTurn(turn, terminal);
  else terminal.out(terminal.colours.dim(harmless(`${type}  ${String(data.conversationId)}  ${source}`)));
}

function showTurn({ participant, contentType, content, metadata }: Turn, terminal: Terminal): void {
  const words =
    typeof content === "object" && content !== null && "text" in content
      ? String(content.text)
      : `${contentType} ${JSON.stringify(content)}`;
  const line = harmless(`${participant}: ${words}`);
  terminal.out(metadata.internal === true ? terminal.colours.dim(line) : line);
}

function isTurn(value: unknown): value is Turn {
  return typeof value === "object" && value !== null && "participant" in value && "metadata" in value;
}
