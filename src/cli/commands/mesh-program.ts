/** The words of `mailroom mesh`; with the reference's flags (agent-swarm protocol, command line). */
import type { Command } from "commander";
import type { OperationName } from "../../mesh/index.js";
import type { ExitCode } from "../exit.js";
import { CliError, EXIT } from "../exit.js";
import { wholeNumber } from "../options.js";
import { withPlace } from "../shared-options.js";
import type { Terminal } from "../terminal.js";
import type { MeshOptions } from "./mesh.js";

type Flags = Readonly<Record<string, string | boolean | undefined>>;

interface Place {
  readonly mesh: Command;
  readonly terminal: Terminal;
  readonly done: (code: ExitCode) => void;
  readonly add: (name: string, description: string) => Command;
}

const load = async () => await import("./mesh.js");

export function addMesh(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const mesh = program.command("mesh").description("signed mail between agents of different people");
  const add = (name: string, description: string) => withPlace(mesh.command(name).description(description));
  const place: Place = { mesh, terminal, done, add };
  addAgent(place);
  addSwarms(place);
  addMembers(place);
  addMessages(place);
}

/** A command that is one operation: its flags, as arguments. */
function simple(
  { terminal, done }: Place,
  command: Command,
  name: OperationName,
  toArguments: (options: Flags) => object = () => ({}),
  question?: string,
): void {
  command.action(async (options: MeshOptions & Flags) => {
    const { assertSure, run, swarmOf } = await load();
    if (question !== undefined) {
      const { yes, json } = options;
      await assertSure(question, { yes: yes === true, json: json === true }, terminal);
    }
    const swarm = takesSwarm(command) ? swarmOf(options, terminal) : {};
    done(await run(name, { ...swarm, ...toArguments(options) }, options, terminal));
  });
}

function takesSwarm(command: Command): boolean {
  return command.options.some(({ long }) => long === "--swarm");
}

const SWARM = ["-s, --swarm <swarm>", "alias, id or name (default: SWARM_ID, or the only one)"] as const;

function addAgent(place: Place): void {
  const { add, terminal, done } = place;
  add("init", "make the key and the identity of this agent")
    .requiredOption("-a, --agent-id <id>", "its name in the mesh")
    .option("-e, --endpoint <url>", "where peers reach it (default: mesh.endpoint)")
    .option(
      "-f, --force",
      "in the place of the agent that is here already; its key is kept beside the new one",
    )
    .option("--dev", "for this machine only: loopback names and the development CA")
    .action(async (options) => done(await (await load()).initAgent(options, terminal)));
  add("dev-ca", "make an authority and a certificate for loopback names, for development")
    .option("--host <name...>", "names for the certificate (default: localhost, 127.0.0.1, ::1)")
    .action(async (options) => done(await (await load()).makeDevCa(options, terminal)));
  add("config", "who this agent is and where it is kept")
    .option(...SWARM)
    .option("--alias <name>", "give a swarm another alias")
    .action(async (options) => done(await (await load()).showConfig(options, terminal)));
  simple(
    place,
    add("status", "the agent, its mutes and boxes").option("-v, --verbose", "with each of its swarms"),
    "status",
    ({ verbose }) => ({ verbose: verbose === true }),
  );
  simple(
    place,
    add("rotate-key", "a new key, announced with the old one").option("-y, --yes", "do not ask"),
    "rotate_key",
    undefined,
    "Change the key? Peers whose software does not know changes of keys will refuse this agent",
  );
  add("export", "the membership state, as the protocol has it")
    .option("-o, --output <file>", "where to (default: standard output)")
    .action(async (options) => done(await (await load()).exportState(options, terminal)));
  add("import", "take a membership state over: all of it, or nothing")
    .requiredOption("-i, --input <file>", "the file")
    .option("--merge", "keep what the file does not have")
    .option("--force", "also when the file is another agent's")
    .option("-y, --yes", "do not ask")
    .action(async (options) => done(await (await load()).importState(options, terminal)));
  const purge = add("purge", "forget what no longer matters")
    .option("--messages", "also messages that were deleted")
    .option("--include-archived", "and those that were archived")
    .option("--retention-hours <hours>", "but not younger ones", "24")
    .option("--force", "younger ones, too")
    .option("--sessions", "refused: a thread of a peer is a task here, and tasks stay")
    .option("--timeout-minutes <minutes>", "refused with it")
    .option("-y, --yes", "do not ask")
    .hook("preAction", refuseSessions);
  simple(
    place,
    purge,
    "purge",
    ({ messages, includeArchived, retentionHours, force }) => ({
      messages: messages === true,
      include_archived: includeArchived === true,
      retention_hours: force === true ? 0 : hours(retentionHours, "--retention-hours"),
    }),
    "Remove them for good?",
  );
}

/**
 * The reference remembers for each peer which session of its assistant to go on with, and forgets those that were idle.
 * Here the peer's threads are tasks: nothing is gone on with but what the peer itself names.
 */
function refuseSessions(purge: Command): void {
  const { sessions, timeoutMinutes } = purge.opts<Flags>();
  if (sessions === undefined && timeoutMinutes === undefined) return;
  throw new CliError(
    "usage",
    "there are no sessions to purge: a thread of a peer is a task here, and tasks stay",
    {
      exit: EXIT.usage,
      hint: "leave out --sessions and --timeout-minutes; --messages removes what was deleted from the inbox",
    },
  );
}

function addSwarms(place: Place): void {
  const { add } = place;
  const create = add("create", "make a swarm; its maker is its master")
    .requiredOption("-n, --name <name>", "its name")
    .option("--alias <name>", "its name in addresses: bob@ALIAS (default: from the name)")
    .option("--allow-member-invite", "members may invite, too")
    .option("--require-approval", "the master approves who joins");
  simple(place, create, "create", ({ name, alias, allowMemberInvite, requireApproval }) => ({
    name,
    alias,
    allow_member_invite: allowMemberInvite === true,
    require_approval: requireApproval === true,
  }));
  const list = add("list", "the swarms of this agent")
    .option("-s, --swarm <swarm>", "only this one")
    .option("-m, --members", "with their members");
  simple(place, list, "list", ({ swarm, members }) => ({ swarm, members: members === true }));
  const invite = add("invite", "an invite URL")
    .option(...SWARM)
    .option("-e, --expires <hours>", "how long it is valid; 0 for ever", "24")
    .option("-m, --max-uses <n>", "how many may join with it (default: any number)");
  simple(place, invite, "invite", ({ expires, maxUses }) => ({
    expires: hours(expires, "--expires"),
    ...(typeof maxUses === "string" && { max_uses: wholeNumber(maxUses, "--max-uses", 1, 1_000_000) }),
  }));
  const revoke = add("revoke", "make an invite worthless")
    .option(...SWARM)
    .requiredOption("--invite <key>", "its key as 'mesh list' shows it, or the URL");
  simple(place, revoke, "revoke", ({ invite: key }) => ({ invite: key }));
  const join = add("join", "join a swarm")
    .requiredOption("-t, --token <url>", "the invite URL")
    .option("--alias <name>", "the swarm's name in addresses");
  simple(place, join, "join", ({ token, alias }) => ({ token, alias }));
  const leave = add("leave", "leave a swarm")
    .option(...SWARM)
    .option("-y, --yes", "do not ask");
  simple(place, leave, "leave", undefined, "Leave the swarm?");
  const dissolve = add("dissolve", "end a swarm for everybody")
    .option(...SWARM)
    .option("-r, --reason <text>", "why")
    .option("-y, --yes", "do not ask");
  simple(place, dissolve, "dissolve", ({ reason }) => ({ reason }), "End the swarm for everybody?");
}

function addMembers(place: Place): void {
  const { add } = place;
  simple(place, add("pending", "who waits for approval").option(...SWARM), "pending");
  const onMember = (name: OperationName, description: string) =>
    add(name, description)
      .option(...SWARM)
      .requiredOption("-a, --agent <id>", "the agent");
  const agent = ({ agent: id }: Flags) => ({ agent: id });
  simple(place, onMember("approve", "let somebody in who asked to join"), "approve", agent);
  simple(place, onMember("reject", "do not let them in"), "reject", agent);
  simple(place, onMember("unban", "let somebody who was kicked join again"), "unban", agent);
  const transfer = onMember("transfer", "make another member the master").option("-y, --yes", "do not ask");
  simple(place, transfer, "transfer", agent, "Hand the swarm over?");
  const kick = onMember("kick", "remove a member")
    .option("-r, --reason <text>", "why")
    .option("-y, --yes", "do not ask");
  const withReason = ({ agent: id, reason }: Flags) => ({ agent: id, reason });
  simple(place, kick, "kick", withReason, "Remove the member?");
  const mute = (name: "mute" | "unmute", description: string) =>
    add(name, description).option("-a, --agent <id>", "an agent").option("-s, --swarm <swarm>", "or a swarm");
  const muted = ({ agent: id, swarm, reason }: Flags) => ({ agent: id, swarm, reason });
  muteCommand(
    place,
    mute("mute", "drop what an agent or a swarm says").option("-r, --reason <text>", "why"),
    "mute",
    muted,
  );
  muteCommand(place, mute("unmute", "hear them again"), "unmute", muted);
}

/** Here `--swarm` has no default: it is what is muted. */
function muteCommand(
  { terminal, done }: Place,
  command: Command,
  name: "mute" | "unmute",
  toArguments: (options: Flags) => object,
): void {
  command.action(async (options: MeshOptions & Flags) => {
    const { run } = await load();
    done(await run(name, toArguments(options), options, terminal));
  });
}

function addMessages(place: Place): void {
  const { add, terminal, done } = place;
  add("send", "a signed message to a member, or to all")
    .option(...SWARM)
    .option("-m, --message <text>", "what to say (default: standard input)")
    .option("--body <text>", "the reference's other name of --message")
    .option("-t, --to <agent>", "to whom (default: everybody)")
    .option("--reply-to <id>", "answer a message of the inbox")
    .option("--notification", "as a notification")
    .option("--extras <json>", "further fields of the message: priority, expires_at, references, …")
    .action(async (options: MeshOptions & Flags) => {
      const { contentOf, run, swarmOf } = await load();
      const { message, body, to, replyTo, notification, extras } = options;
      const given = {
        ...swarmOf(options, terminal),
        message: await contentOf(textOf(message) ?? textOf(body), terminal),
        to,
        reply_to: replyTo,
        type: notification === true ? "notification" : "message",
        ...(typeof extras === "string" && { extras: jsonOf(extras) }),
      };
      done(await run("send", given, options, terminal));
    });
  add("messages", "what came in, newest first")
    .option("-s, --swarm <swarm>", "only of this swarm")
    .option("-l, --limit <n>", "how many", "10")
    .option("--status <status>", "unread, read, archived, deleted or all", "all")
    .option("--no-mark-read", "leave them unread")
    .option("--count", "only how many there are")
    .option("--archive <id>", "put one away")
    .option("--delete <id>", "delete one")
    .option("--archive-all", "put all away")
    .action(async (options: MeshOptions & Flags) => {
      const { run } = await load();
      const { name, given } = inboxOperation(options);
      done(await run(name, given, options, terminal));
    });
  add("sent", "what was sent, newest first, and what became of it")
    .option("-s, --swarm <swarm>", "only to this swarm")
    .option("-l, --limit <n>", "how many", "20")
    .option("--count", "only how many there are")
    .action(async (options: MeshOptions & Flags) => {
      const { run } = await load();
      const { swarm, count, limit } = options;
      const given = { swarm, limit: wholeNumber(String(limit), "--limit", 1, 100) };
      done(await run(count === true ? "count_sent" : "sent", given, options, terminal));
    });
}

function inboxOperation(options: Flags): { readonly name: OperationName; readonly given: object } {
  const { swarm, limit, status, markRead, count, archive, archiveAll } = options;
  if (count === true) return { name: "count_messages", given: { swarm } };
  if (archiveAll === true) return { name: "archive_all", given: { swarm } };
  if (archive !== undefined) return { name: "archive", given: { message_id: archive } };
  if (options.delete !== undefined) return { name: "delete", given: { message_id: options.delete } };
  return {
    name: "messages",
    given: {
      swarm,
      status,
      mark_read: markRead !== false,
      limit: wholeNumber(String(limit), "--limit", 1, 100),
    },
  };
}

function textOf(value: string | boolean | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function hours(given: string | boolean | undefined, option: string): number {
  const value = Number(given);
  if (typeof given === "string" && given.trim() !== "" && Number.isFinite(value) && value >= 0) return value;
  throw new CliError("usage", `${option} '${String(given)}' is not a number of hours`, { exit: EXIT.usage });
}

function jsonOf(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch (cause) {
    throw new CliError("usage", "--extras is not JSON", { exit: EXIT.usage, cause });
  }
}
