/** `mailroom conversations`: turns of users and agents, in tasks and elsewhere. */
import { encodeJson, MailroomError } from "../../base/index.js";
import {
  type Conversation,
  ConversationClient,
  ConversationError,
  type ConversationEvent,
  type ConversationTurn,
} from "../../client/index.js";
import { noServerOn, requireLocalServer } from "../../server/control.js";
import { interruptible } from "../connect.js";
import { EXIT, type ExitCode } from "../exit.js";
import { findMapTarget, type MapOptions } from "../map-socket.js";
import { escapeControlCharacters, type Terminal } from "../terminal.js";

/** The protocol's code for a conversation that does not exist or is hidden from the caller. */
const NO_SUCH_CONVERSATION = 10000;

export async function listConversations(options: MapOptions, terminal: Terminal): Promise<ExitCode> {
  return withClient(undefined, options, terminal, async (client) => {
    const all: Conversation[] = [];
    for await (const conversation of client.list()) all.push(conversation);
    if (options.json === true) terminal.json({ conversations: all });
    else for (const one of all) terminal.out(escapeControlCharacters(lineOf(one)));
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
    const turns: ConversationTurn[] = [];
    for await (const turn of client.turns(wanted)) turns.push(turn);
    if (options.json === true) {
      terminal.json({ ...details, turns });
      return EXIT.ok;
    }
    terminal.out(terminal.colors.bold(escapeControlCharacters(lineOf(details.conversation))));
    terminal.out(escapeControlCharacters(`with ${details.participants.map(({ id }) => id).join(", ")}`));
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
    // The server accepts a filter without matches, but following it would never end.
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

export async function exportConversation(
  wanted: string,
  options: MapOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  return withClient(wanted, options, terminal, async (client) => {
    const details = await client.get(wanted);
    terminal.out(JSON.stringify({ conversation: details.conversation, participants: details.participants }));
    for await (const turn of client.turns(wanted)) terminal.out(JSON.stringify(turn));
    return EXIT.ok;
  });
}

export async function archiveConversation(
  wanted: string,
  options: MapOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  return withClient(wanted, options, terminal, async (client) => {
    const conversation = await client.archive(wanted);
    if (options.json === true) terminal.json({ conversation });
    else terminal.out(`archived ${wanted}`);
    return EXIT.ok;
  });
}

export async function deleteConversation(
  wanted: string,
  options: MapOptions & { readonly yes?: boolean },
  terminal: Terminal,
): Promise<ExitCode> {
  if (options.yes !== true) {
    throw new MailroomError(
      "usage",
      `this deletes ${wanted} with all its turns: export it if you need it, then add --yes`,
    );
  }
  return withClient(wanted, options, terminal, async (client) => {
    const result = await client.request("mailroom/delete", { conversationId: wanted });
    if (options.json === true) terminal.json(result);
    else terminal.out(`deleted ${wanted}`);
    return EXIT.ok;
  });
}

export async function manageObservers(
  options: MapOptions & { readonly grant?: string; readonly revoke?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const { grant, revoke } = options;
  return withClient(undefined, options, terminal, async (client) => {
    if (grant !== undefined) await client.request("mailroom/observers/grant", { principal: grant });
    if (revoke !== undefined) await client.request("mailroom/observers/revoke", { principal: revoke });
    const { observers } = await client.request("mailroom/observers/list", {});
    if (options.json === true) terminal.json({ observers });
    else for (const one of observers) terminal.out(one);
    return EXIT.ok;
  });
}

async function withClient(
  wanted: string | undefined,
  options: MapOptions,
  terminal: Terminal,
  work: (client: ConversationClient, signal: AbortSignal) => Promise<ExitCode>,
): Promise<ExitCode> {
  const notify = (line: string) => terminal.note(line);
  const target = await findMapTarget(options, terminal, (data) => requireLocalServer(data, notify));
  if (target.url === undefined) throw noServerOn(target.data);
  const { url } = target;
  const { signal, release } = interruptible();
  try {
    // The socket already has its credential.
    const client = await ConversationClient.connect(url, { open: () => target.open(), reconnects: 0 });
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

function failureOf(error: ConversationError, wanted: string | undefined): MailroomError<string> {
  if (error.number === NO_SUCH_CONVERSATION && wanted !== undefined) {
    return new MailroomError("unknown_conversation", `unknown conversation '${wanted}'`, {
      details: { hint: "list conversations with 'mailroom conversations list'" },
      cause: error,
    });
  }
  return error;
}

function lineOf({ id, type, status, subject, createdBy, metadata }: Conversation): string {
  const task = typeof metadata.task_id === "string" ? `  task ${metadata.task_id}` : "";
  return `${id}  ${type}  ${status}  ${createdBy}${task}${subject === undefined ? "" : `  ${subject}`}`;
}

function showEvent(event: ConversationEvent, terminal: Terminal): void {
  if (event.type === "mail.turn.added") return showTurn(event.data.turn, terminal);
  const { type, data, source } = event;
  terminal.out(terminal.colors.dim(escapeControlCharacters(`${type}  ${data.conversationId}  ${source}`)));
}

function showTurn(
  { participant, contentType, content, metadata }: ConversationTurn,
  terminal: Terminal,
): void {
  const words =
    typeof content === "object" && content !== null && "text" in content
      ? String(content.text)
      : `${contentType} ${encodeJson(content)}`;
  const line = escapeControlCharacters(`${participant}: ${words}`);
  terminal.out(metadata.internal === true ? terminal.colors.dim(line) : line);
}
