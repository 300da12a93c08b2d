/** The `mailroom` command: which words there are. What they do is loaded when they are used. */
import { Command, CommanderError, Option } from "commander";
import { clientFlagsFirst } from "./client-flags.js";
import { addConversations } from "./commands/conversations-program.js";
import { addMesh } from "./commands/mesh-program.js";
import { addSwarms } from "./commands/swarms-program.js";
import { EXIT, type ExitCode, explain } from "./exit.js";
import { modernFlags } from "./old-flags.js";
import { type CommonOptions, EXIT_HELP } from "./options.js";
import { config, data, json, token, withPlace, withServer } from "./shared-options.js";
import { processTerminal, type Terminal } from "./terminal.js";

/** @returns the exit code */
export async function main(
  argv: readonly string[],
  terminal: Terminal = processTerminal(),
): Promise<ExitCode> {
  let exit: ExitCode = EXIT.ok;
  const program = createProgram(terminal, (code) => {
    exit = code;
  });
  if (argv.length === 0) {
    program.outputHelp();
    return EXIT.ok;
  }
  try {
    await program.parseAsync(clientFlagsFirst(modernFlags(versionAsWord(argv))), { from: "user" });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return report(error, argv, terminal);
  }
}

/** `mailroom --version` is `mailroom version`. After a command the flag would be the command's own. */
function versionAsWord(argv: readonly string[]): string[] {
  const command = argv.findIndex((word) => !word.startsWith("-"));
  return argv.map((word, index) =>
    word === "--version" && (command === -1 || index < command) ? "version" : word,
  );
}

/** No stack traces, unless somebody asked for them. */
function report(error: unknown, argv: readonly string[], terminal: Terminal): ExitCode {
  const { code, message, hint, exit } = explain(error);
  if (exit === EXIT.interrupted) return exit;
  if (argv.includes("--json")) {
    terminal.note(JSON.stringify({ error: { code, message, ...(hint !== undefined && { hint }) } }));
  } else {
    terminal.note(`${terminal.colours.red("error:")} ${message}`);
    if (hint !== undefined) terminal.note(`  ${hint}`);
  }
  if (argv.includes("--debug") && error instanceof Error) terminal.note(error.stack);
  return exit;
}

function createProgram(terminal: Terminal, done: (code: ExitCode) => void): Command {
  const program = new Command("mailroom")
    .description("Durable mail for software agents.")
    .option("--debug", "show stack traces")
    .option("--version", "the same as the command 'version'")
    .addHelpText("after", EXIT_HELP)
    .enablePositionalOptions()
    .showHelpAfterError("(add --help for the ways to write it)")
    .exitOverride();

  program
    .command("demo")
    .description("start a server with the demonstration swarm and watch it solve a task")
    .option("-p, --port <port>", "port; 0 takes any that is free")
    .addOption(data())
    .option("-m, --message <text>", "what to ask")
    .option("--once", "leave after the first task")
    .option("--debug", "show stack traces")
    .action(async (options) => done(await (await import("./commands/demo.js")).runDemo(options, terminal)));

  program
    .command("server")
    .description("serve a swarm")
    .addOption(config())
    .option("-p, --port <port>", "port (default 8000)")
    .option("-H, --host <host>", "address to listen on (default 127.0.0.1)")
    .addOption(data())
    .option("--dev", "no tokens needed, this machine only")
    .option("-s, --swarm <file>", "swarm file (default: swarms.json); without any, the demonstration swarm")
    .addOption(new Option("--swarm-source <file>", "the reference's name of --swarm").hideHelp())
    .option("-n, --swarm-name <name>", "which swarm of the file")
    .option("--swarm-registry <file>", "file of other swarms (-rf)")
    .option("--mesh-listen <host:port>", "where peers of the mesh reach this server (see 'mailroom mesh')")
    .option("-r, --reload", "start again when the swarm file changes")
    .option("-d, --debug", "log everything, show stack traces")
    .option("--print-llm-streams <true|false>", "show what models write as they write it")
    .addOption(json())
    .action(async (options) =>
      done(await (await import("./commands/server.js")).runServer(options, terminal)),
    );

  program
    .command("client")
    .description("talk to a server: interactive, or one command with its words")
    .argument("<url>", "http(s)://… or swarm://…")
    .argument("[command...]", 'a command of the client, e.g. message "hello"')
    .addOption(token())
    .addOption(new Option("--api-key <token>", "the reference's name of --token (-ak)").hideHelp())
    .addOption(config())
    .option("-t, --timeout <seconds>", "time limit of a call")
    .option("-v, --verbose", "show whole messages and every event")
    .addOption(json())
    .passThroughOptions()
    .action(async (url, words, options) =>
      done(await (await import("./commands/client.js")).runClient(url, words, options, terminal)),
    );

  program
    .command("ping")
    .description("ask a server whether it is well")
    .argument("<url>", "http(s)://… or swarm://…")
    .option("-t, --timeout <seconds>", "time limit", "5")
    .addOption(json())
    .action(async (url, options) =>
      done(await (await import("./commands/ping.js")).runPing(url, options, terminal)),
    );

  addTasks(program, terminal, done);
  addTokens(program, terminal, done);
  addConversations(program, terminal, done);
  addSwarms(program, terminal, done);
  addMesh(program, terminal, done);

  withServer(
    program
      .command("mcp")
      .description("MCP over standard input and output: give tasks, or be an agent of the swarm"),
  )
    .option("--as <role:id>", "who you are on this machine: user:ann, or member:coder (default admin:local)")
    .addOption(data())
    .addOption(config())
    .option("-s, --swarm <file>", "swarm file, if no server is running")
    .option("--dev", "no tokens needed, this machine only, if no server is running")
    .action(async (options) => done(await (await import("./commands/mcp.js")).runMcp(options, terminal)));

  program
    .command("validate")
    .description("check swarm files and MAIL messages, told apart by their content")
    .argument("<file...>", "JSON files; - is standard input")
    .option("--strict-ids", "task ids must be UUIDs")
    .option("--no-references", "do not load what swarm files refer to")
    .addOption(json())
    .action(async (files, options) =>
      done(await (await import("./commands/validate.js")).runValidate(files, options, terminal)),
    );

  program
    .command("init")
    .description("write a small project to start from")
    .argument("[dir]", "where", ".")
    .option("--name <name>", "name of the swarm", "desk")
    .option("--force", "overwrite files that are there")
    .addOption(json())
    .action(async (directory, options) =>
      done(await (await import("./commands/init.js")).runInit(directory, options, terminal)),
    );

  program
    .command("config")
    .description("show the settings in force and where each came from")
    .addOption(config())
    .option("--changed", "only those that are not defaults")
    .addOption(json())
    .action(async (options) =>
      done(await (await import("./commands/config.js")).runConfig(options, terminal)),
    );

  program
    .command("register")
    .description("make this program the one that opens swarm:// links")
    .option("--print", "only show what would be written")
    .addOption(json())
    .action(async (options) =>
      done(await (await import("./commands/register.js")).runRegister(options, terminal)),
    );

  program
    .command("version")
    .description("versions of Mailroom and of the protocol")
    .addOption(json())
    .action(async (options: CommonOptions) => {
      const { versions } = await import("./version.js");
      const found = versions();
      if (options.json === true) terminal.json(found);
      else terminal.out(`mailroom ${found.mailroom} (MAIL ${found.protocol}, Node ${found.node})`);
      done(EXIT.ok);
    });

  program
    .command("db-init", { hidden: true })
    .description("not needed: the store is made when it is first opened")
    .action(() => {
      terminal.out("nothing to do: the store is made when it is first opened");
      done(EXIT.ok);
    });

  return program;
}

function addTasks(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const tasks = program.command("tasks").description("the tasks of a running or a stopped server");
  const load = async () => await import("./commands/tasks.js");
  const add = (name: string, description: string) =>
    withPlace(withServer(tasks.command(name).description(description)));
  add("list", "newest first")
    .option("--status <status>", "running, paused, completed, failed or cancelled")
    .option("--limit <n>", "how many", "50")
    .action(async (options) => done(await (await load()).listTasks(options, terminal)));
  add("show", "one task with all that happened")
    .argument("<task>", "task id or internal key")
    .option("-v, --verbose", "whole messages and every event")
    .action(async (task, options) => done(await (await load()).showTask(task, options, terminal)));
  add("follow", "one task, and on as it happens")
    .argument("<task>", "task id or internal key")
    .option("-v, --verbose", "whole messages and every event")
    .option("--after <id>", "only what came after this event")
    .action(async (task, options) => done(await (await load()).followTask(task, options, terminal)));
  add("cancel", "end a task now")
    .argument("<task>", "task id or internal key")
    .action(async (task, options) => done(await (await load()).cancelTask(task, options, terminal)));
  add("answer", "answer what a paused task asks")
    .argument("<task>", "task id")
    .argument("<answer...>", "a text, or CALL_ID=text for each of several calls")
    .option("--as <role:id>", "whose task it is; only its owner may write into it")
    .action(async (task, words, options) =>
      done(await (await load()).answerTask(task, words, options, terminal)),
    );
}

function addTokens(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const tokens = program.command("token").description("who may call the server");
  const load = async () => await import("./commands/token.js");
  const add = (name: string, description: string) => withPlace(tokens.command(name).description(description));
  add("create", "make a token; it is shown once")
    .requiredOption("--role <role>", "user, admin, agent (another swarm) or member (one agent of this swarm)")
    .requiredOption("--id <id>", "who: a name, a swarm's name, or an agent's name")
    .option("--label <text>", "what it is for")
    .action(async (options) => done(await (await load()).createToken(options, terminal)));
  add("list", "all tokens, without their secrets").action(async (options) =>
    done(await (await load()).listTokens(options, terminal)),
  );
  add("revoke", "refuse a token from now on")
    .argument("<id>", "its id as 'token list' shows it, or the token itself")
    .action(async (id, options) => done(await (await load()).revokeToken(id, options, terminal)));
}
