/** The words of `mailroom conversations` and `mailroom map`. What they do is loaded when they are used. */
import type { Command } from "commander";
import type { ExitCode } from "../exit.js";
import { config, data, json, withServer } from "../shared-options.js";
import type { Terminal } from "../terminal.js";

export function addConversations(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const reaching = (command: Command) =>
    withServer(command)
      .option("--as <role:id>", "on this machine: whom to speak for", "admin:local")
      .addOption(data())
      .addOption(config());
  const conversations = program
    .command("conversations")
    .description("what was said, in tasks and beside them; needs a running server");
  const load = async () => await import("./conversations.js");
  const add = (name: string, description: string) =>
    reaching(conversations.command(name).description(description)).addOption(json());
  add("list", "oldest first").action(async (options) =>
    done(await (await load()).listConversations(options, terminal)),
  );
  add("show", "one conversation with all its turns")
    .argument("<conversation>", "its id")
    .action(async (id, options) => done(await (await load()).showConversation(id, options, terminal)));
  add("follow", "what is said from now on")
    .argument("[conversation]", "its id; all of them if left out")
    .option("--after <event>", "begin after this event")
    .action(async (id, options) => done(await (await load()).followConversations(id, options, terminal)));

  reaching(program.command("map").description("the Multi-Agent Protocol for programs that speak in lines"))
    .option("--stdio", "on standard input and output, one JSON object per line")
    .action(async (options) => done(await (await import("./map.js")).runMap(options, terminal)));
}
