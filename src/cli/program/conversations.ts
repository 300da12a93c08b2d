/** Declares `mailroom conversations` and `mailroom map`; their code is loaded on use. */
import type { Command } from "commander";
import type { ExitCode } from "../exit.js";
import { config, data, json, withServer } from "../options.js";
import type { Terminal } from "../terminal.js";

export function addConversations(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const reaching = (command: Command) =>
    withServer(command)
      .option("--as <role:id>", "identity on this machine", "admin:local")
      .addOption(data())
      .addOption(config());
  const conversations = program
    .command("conversations")
    .description("show and manage conversations of a running server");
  const load = async () => await import("../commands/conversations.js");
  const add = (name: string, description: string) =>
    reaching(conversations.command(name).description(description)).addOption(json());
  add("list", "list conversations, oldest first").action(async (options) =>
    done(await (await load()).listConversations(options, terminal)),
  );
  add("show", "show a conversation with all its turns")
    .argument("<conversation>", "conversation id")
    .action(async (id, options) => done(await (await load()).showConversation(id, options, terminal)));
  add("follow", "follow new events")
    .argument("[conversation]", "conversation id (default: all conversations)")
    .option("--after <event>", "start after this event")
    .action(async (id, options) => done(await (await load()).followConversations(id, options, terminal)));
  add("export", "print a conversation as JSON, one object per line: the conversation, then its turns")
    .argument("<conversation>", "conversation id")
    .action(async (id, options) => done(await (await load()).exportConversation(id, options, terminal)));
  add("archive", "archive a conversation: it can be read, but not written to")
    .argument("<conversation>", "conversation id")
    .action(async (id, options) => done(await (await load()).archiveConversation(id, options, terminal)));
  add("delete", "delete a conversation with all its turns")
    .argument("<conversation>", "conversation id")
    .option("-y, --yes", "confirm the deletion")
    .action(async (id, options) => done(await (await load()).deleteConversation(id, options, terminal)));
  add("observers", "show, add or remove users who may observe all conversations")
    .option("--grant <user:id>", "let this user observe")
    .option("--revoke <user:id>", "let this user observe no longer")
    .action(async (options) => done(await (await load()).manageObservers(options, terminal)));

  reaching(program.command("map").description("speak the Multi-Agent Protocol"))
    .option("--stdio", "use standard input and output, one JSON object per line")
    .action(async (options) => done(await (await import("../commands/map.js")).runMap(options, terminal)));
}
