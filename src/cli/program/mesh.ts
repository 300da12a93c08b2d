/** The command line of `mailroom mesh`, with the flags of the reference (REF-39). */

import type { Command } from "commander";
import { MailroomError } from "../../base/index.js";
import type { AdminOperationName } from "../../mesh/index.js";
import type { MeshOptions } from "../commands/mesh.js";
import type { ExitCode } from "../exit.js";
import { wholeNumber, withDataDirectory } from "../options.js";
import type { Terminal } from "../terminal.js";

type Flags = Readonly<Record<string, string | boolean | undefined>>;

interface Place {
  readonly mesh: Command;
  readonly terminal: Terminal;
  readonly done: (code: ExitCode) => void;
  readonly add: (name: string, description: string) => Command;
}

const load = async () => await import("../commands/mesh.js");

export function addMesh(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const mesh = program.command("mesh").description("exchange signed mail with independent agents");
  const add = (name: string, description: string) =>
    withDataDirectory(mesh.command(name).description(description));
  const place: Place = { mesh, terminal, done, add };
  addAgent(place);
  addSwarms(place);
  addMembers(place);
  addMessages(place);
  addWaiting(place);
}

/** A command that is one operation, with its flags as arguments. */
function simple(
  { terminal, done }: Place,
  command: Command,
  name: AdminOperationName,
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

const SWARM = [
  "-s, --swarm <swarm>",
  "alias, id or name of the swarm (default: SWARM_ID, or the only one)",
] as const;

function addAgent(place: Place): void {
  const { add, terminal, done } = place;
  add("init", "create the key and the identity of this agent")
    .requiredOption("-a, --agent-id <id>", "the agent's id in the mesh")
    .option("-e, --endpoint <url>", "the URL where peers reach it (default: mesh.endpoint)")
    .option("-f, --force", "replace an existing agent; its key is kept beside the new one")
    .option("--dev", "for this machine only: allow loopback names and the development CA")
    .action(async (options) => done(await (await load()).initAgent(options, terminal)));
  add("dev-ca", "create a CA and a certificate for loopback names, for development")
    .option("--host <name...>", "names for the certificate (default: localhost, 127.0.0.1, ::1)")
    .action(async (options) => done(await (await load()).makeDevCa(options, terminal)));
  add("config", "show the agent's identity and the location of its data")
    .option(...SWARM)
    .option("--alias <name>", "change the alias of a swarm")
    .action(async (options) => done(await (await load()).showConfig(options, terminal)));
  simple(
    place,
    add("status", "show the agent, its mutes, inbox and outbox").option(
      "-v, --verbose",
      "include each swarm",
    ),
    "status",
    ({ verbose }) => ({ verbose: verbose === true }),
  );
  const endpoint = add("endpoint", "move this agent to another endpoint and tell all members")
    .requiredOption("-e, --endpoint <url>", "the new URL where peers reach it")
    .option("-y, --yes", "skip the confirmation");
  simple(place, endpoint, "endpoint", ({ endpoint: url }) => ({ endpoint: url }), "Move the agent?");
  simple(
    place,
    add("rotate-key", "create a new key and announce it with the old one").option(
      "-y, --yes",
      "skip the confirmation",
    ),
    "rotate_key",
    undefined,
    "Change the key? Open invites become invalid, and peers whose software does not support new keys refuse this agent",
  );
  add("export", "export the membership state in the protocol's format")
    .option("-o, --output <file>", "the file to write (default: standard output)")
    .action(async (options) => done(await (await load()).exportState(options, terminal)));
  add("import", "import a membership state completely or not at all")
    .requiredOption("-i, --input <file>", "the file to read")
    .option("--merge", "keep local state that is not in the file")
    .option("--force", "accept the file of another agent")
    .option("-y, --yes", "skip the confirmation")
    .action(async (options) => done(await (await load()).importState(options, terminal)));
  const purge = add("purge", "remove expired records")
    .option("--messages", "also remove deleted messages")
    .option("--include-archived", "also remove archived messages")
    .option("--retention-hours <hours>", "keep messages that are younger", "24")
    .option("--force", "also remove younger messages")
    .option("--sessions", "rejected: peer threads are stored as tasks, which are kept")
    .option("--timeout-minutes <minutes>", "rejected together with --sessions")
    .option("-y, --yes", "skip the confirmation")
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
    "Remove the messages permanently?",
  );
}

/**
 * The reference stores an assistant session per peer and purges idle ones. Here peer threads are tasks, and only the
 * peer itself continues them.
 */
function refuseSessions(purge: Command): void {
  const { sessions, timeoutMinutes } = purge.opts<Flags>();
  if (sessions === undefined && timeoutMinutes === undefined) return;
  throw new MailroomError(
    "usage",
    "there are no sessions to purge: peer threads are stored as tasks, which are kept",
    {
      details: { hint: "omit --sessions and --timeout-minutes; --messages removes deleted messages" },
    },
  );
}

function addSwarms(place: Place): void {
  const { add } = place;
  const create = add("create", "create a swarm with this agent as its master")
    .requiredOption("-n, --name <name>", "the name of the swarm")
    .option("--alias <name>", "its name in addresses: bob@ALIAS (default: derived from the name)")
    .option("--allow-member-invite", "allow members to issue invites")
    .option("--require-approval", "require the master's approval for joins");
  simple(place, create, "create", ({ name, alias, allowMemberInvite, requireApproval }) => ({
    name,
    alias,
    allow_member_invite: allowMemberInvite === true,
    require_approval: requireApproval === true,
  }));
  const list = add("list", "list the swarms of this agent")
    .option("-s, --swarm <swarm>", "list only this swarm")
    .option("-m, --members", "include the members");
  simple(place, list, "list", ({ swarm, members }) => ({ swarm, members: members === true }));
  const invite = add("invite", "issue an invite URL")
    .option(...SWARM)
    .option("-e, --expires <hours>", "hours until it expires; 0 for never", "24")
    .option("-m, --max-uses <n>", "how many agents can join with it (default: unlimited)");
  simple(place, invite, "invite", ({ expires, maxUses }) => ({
    expires: hours(expires, "--expires"),
    ...(typeof maxUses === "string" && { max_uses: wholeNumber(maxUses, "--max-uses", 1, 1_000_000) }),
  }));
  const revoke = add("revoke", "revoke an invite")
    .option(...SWARM)
    .requiredOption("--invite <key>", "its key as shown by 'mesh list', or its URL");
  simple(place, revoke, "revoke", ({ invite: key }) => ({ invite: key }));
  const join = add("join", "join a swarm")
    .requiredOption("-t, --token <url>", "the invite URL")
    .option("--alias <name>", "the swarm's name in addresses");
  simple(place, join, "join", ({ token, alias }) => ({ token, alias }));
  simple(place, add("sync", "fetch the member list from the master").option(...SWARM), "sync");
  const leave = add("leave", "leave a swarm")
    .option(...SWARM)
    .option("-y, --yes", "skip the confirmation");
  simple(place, leave, "leave", undefined, "Leave the swarm?");
  const dissolve = add("dissolve", "dissolve a swarm for all members")
    .option(...SWARM)
    .option("-r, --reason <text>", "why")
    .option("-y, --yes", "skip the confirmation");
  simple(place, dissolve, "dissolve", ({ reason }) => ({ reason }), "Dissolve the swarm for all members?");
}

function addMembers(place: Place): void {
  const { add } = place;
  simple(place, add("pending", "list agents that wait for approval").option(...SWARM), "pending");
  const onMember = (name: AdminOperationName, description: string) =>
    add(name, description)
      .option(...SWARM)
      .requiredOption("-a, --agent <id>", "the agent");
  const agent = ({ agent: id }: Flags) => ({ agent: id });
  simple(place, onMember("approve", "approve a request to join"), "approve", agent);
  simple(place, onMember("reject", "reject a request to join"), "reject", agent);
  simple(place, onMember("unban", "allow a kicked agent to join again"), "unban", agent);
  const transfer = onMember("transfer", "make another member the master").option(
    "-y, --yes",
    "skip the confirmation",
  );
  simple(place, transfer, "transfer", agent, "Transfer the swarm?");
  const kick = onMember("kick", "remove and ban a member")
    .option("-r, --reason <text>", "why")
    .option("-y, --yes", "skip the confirmation");
  const withReason = ({ agent: id, reason }: Flags) => ({ agent: id, reason });
  simple(place, kick, "kick", withReason, "Remove the member?");
  const ping = add("ping", "check whether a member can be reached, and retry what waits for it")
    .argument("<agent>", "the member")
    .option(...SWARM);
  ping.action(async (agentId: string, options: MeshOptions) => {
    const { run, swarmOf } = await load();
    const { terminal, done } = place;
    done(await run("ping", { ...swarmOf(options, terminal), agent: agentId }, options, terminal));
  });
  const mute = (name: "mute" | "unmute", description: string) =>
    add(name, description)
      .option("-a, --agent <id>", "the agent")
      .option("-s, --swarm <swarm>", "or the swarm");
  const muted = ({ agent: id, swarm, reason }: Flags) => ({ agent: id, swarm, reason });
  muteCommand(
    place,
    mute("mute", "drop messages of an agent or a swarm").option("-r, --reason <text>", "why"),
    "mute",
    muted,
  );
  muteCommand(place, mute("unmute", "accept messages of an agent or a swarm again"), "unmute", muted);
}

/** Here `--swarm` has no default: it names what is muted. */
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
  add("send", "send a signed message to a member or to all members")
    .option(...SWARM)
    .option("-m, --message <text>", "the content (default: standard input)")
    .option("--body <text>", "the reference's name of --message")
    .option("-t, --to <agent>", "the recipient (default: all members)")
    .option("--reply-to <id>", "reply to a message of the inbox")
    .option("--notification", "send it as a notification")
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
  add("messages", "list received messages, newest first")
    .option("-s, --swarm <swarm>", "only of this swarm")
    .option("-l, --limit <n>", "maximum number of messages", "10")
    .option("--status <status>", "unread, read, archived, deleted or all", "all")
    .option("--no-mark-read", "leave the messages unread")
    .option("--count", "show only the counts")
    .option("--archive <id>", "archive a message")
    .option("--delete <id>", "delete a message")
    .option("--archive-all", "archive all messages")
    .action(async (options: MeshOptions & Flags) => {
      const { run } = await load();
      const { name, given } = inboxOperation(options);
      done(await run(name, given, options, terminal));
    });
  add("sent", "list sent messages with their delivery status, newest first")
    .option("-s, --swarm <swarm>", "only to this swarm")
    .option("-l, --limit <n>", "maximum number of messages", "20")
    .option("--count", "show only the counts")
    .action(async (options: MeshOptions & Flags) => {
      const { run } = await load();
      const { swarm, count, limit } = options;
      if (count === true) return done(await run("count_sent", { swarm }, options, terminal));
      const given = { swarm, limit: wholeNumber(String(limit), "--limit", 1, 100) };
      done(await run("sent", given, options, terminal));
    });
}

function addWaiting(place: Place): void {
  const { add } = place;
  const which = ({ message, agent }: Flags) => ({ message_id: message, agent });
  const retry = add("retry", "retry messages that wait for delivery")
    .option("-m, --message <id>", "only this message")
    .option("-a, --agent <id>", "only messages to this agent");
  simple(place, retry, "retry", which);
  const drop = add("drop", "stop trying to deliver a message")
    .requiredOption("-m, --message <id>", "the message")
    .option("-a, --agent <id>", "only for this recipient")
    .option("-y, --yes", "skip the confirmation");
  simple(place, drop, "drop", which, "Abandon the message?");
}

function inboxOperation(options: Flags): { readonly name: AdminOperationName; readonly given: object } {
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
  throw new MailroomError("usage", `${option} '${String(given)}' is not a number of hours`);
}

function jsonOf(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch (cause) {
    throw new MailroomError("usage", "--extras is not valid JSON", { cause });
  }
}
