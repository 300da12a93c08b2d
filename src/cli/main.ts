/** The `mailroom` command: declares the commands; their code is loaded on use. */
import { Command, CommanderError } from "commander";
import { serverSettings } from "../server/settings.js";
import { normalizeArgv } from "./argv.js";
import { EXIT, type ExitCode, explain } from "./exit.js";
import {
  type CommonOptions,
  config,
  data,
  EXIT_HELP,
  json,
  optionFor,
  withDataDirectory,
  withServer,
  withSettings,
} from "./options.js";
import { addApprovals } from "./program/approvals.js";
import { addConversations } from "./program/conversations.js";
import { addMesh } from "./program/mesh.js";
import { addSwarms } from "./program/swarms.js";
import { addTasks } from "./program/tasks.js";
import { addTokens } from "./program/token.js";
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
    await program.parseAsync(normalizeArgv(argv), { from: "user" });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return report(error, argv, terminal);
  }
}

/** Prints stack traces only on request. */
function report(error: unknown, argv: readonly string[], terminal: Terminal): ExitCode {
  const { code, message, hint, exit } = explain(error);
  if (exit === EXIT.interrupted) return exit;
  if (argv.includes("--json")) {
    terminal.note(JSON.stringify({ error: { code, message, ...(hint !== undefined && { hint }) } }));
  } else {
    terminal.note(`${terminal.colors.red("error:")} ${message}`);
    if (hint !== undefined) terminal.note(`  ${hint}`);
  }
  if (argv.includes("--debug") && error instanceof Error) terminal.note(error.stack);
  return exit;
}

const settings = serverSettings.declarations;

function createProgram(terminal: Terminal, done: (code: ExitCode) => void): Command {
  const program = new Command("mailroom")
    .description("durable mail for software agents")
    .option("--debug", "show stack traces")
    .option("--version", "same as the command 'version'")
    .addHelpText("after", EXIT_HELP)
    .enablePositionalOptions()
    .showHelpAfterError("(run with --help for usage)")
    .exitOverride();

  program
    .command("demo")
    .description("start a server with the demonstration swarm and watch it solve a task")
    .addOption(optionFor(settings.port, "port; 0 selects a free one"))
    .addOption(data())
    .option("-m, --message <text>", "question to ask")
    .option("--exit", "exit after the first task, also on a terminal")
    .option("--once", "same as --exit")
    .option("--debug", "show stack traces")
    .action(async (options) => done(await (await import("./commands/demo.js")).runDemo(options, terminal)));

  withSettings(program.command("server").description("serve a swarm").addOption(config()), "server")
    .addOption(json())
    .action(async (options) =>
      done(await (await import("./commands/server.js")).runServer(options, terminal)),
    );

  withSettings(
    program
      .command("client")
      .description("talk to a server, interactively or with one command")
      .argument("<url>", "http(s)://… or swarm://…")
      .argument("[command...]", 'a client command, e.g. message "hello"')
      .addOption(config()),
    "client",
  )
    .addOption(json())
    .passThroughOptions()
    .action(async (url, words, options) =>
      done(await (await import("./commands/client.js")).runClient(url, words, options, terminal)),
    );

  program
    .command("ping")
    .description("check a server's health")
    .argument("<url>", "http(s)://… or swarm://…")
    .option("-t, --timeout <seconds>", "time limit", "5")
    .addOption(json())
    .action(async (url, options) =>
      done(await (await import("./commands/ping.js")).runPing(url, options, terminal)),
    );

  withDataDirectory(
    program.command("console").description("print a link that signs in to the console of the running server"),
  )
    .option("--as <role:id>", "identity: user:ann, or admin:ann", "admin:local")
    .action(async (options) =>
      done(await (await import("./commands/console.js")).runConsole(options, terminal)),
    );

  addTasks(program, terminal, done);
  addApprovals(program, terminal, done);
  addTokens(program, terminal, done);
  addConversations(program, terminal, done);
  addSwarms(program, terminal, done);
  addMesh(program, terminal, done);

  withServer(
    program
      .command("mcp")
      .description("serve MCP on standard input and output, for a user or an agent of the swarm"),
  )
    .option("--as <role:id>", "identity on this machine: user:ann, or member:coder (default admin:local)")
    .addOption(data())
    .addOption(config())
    .addOption(optionFor(settings.swarm.source, "swarm file, if no server is running"))
    .addOption(optionFor(settings.dev, "development mode, if no server is running"))
    .action(async (options) => done(await (await import("./commands/mcp.js")).runMcp(options, terminal)));

  program
    .command("validate")
    .description("check swarm files and MAIL messages")
    .argument("<file...>", "JSON files; - reads standard input")
    .option("--strict-ids", "require task ids to be UUIDs")
    .option("--no-references", "do not load modules that swarm files refer to")
    .addOption(json())
    .action(async (files, options) =>
      done(await (await import("./commands/validate.js")).runValidate(files, options, terminal)),
    );

  program
    .command("init")
    .description("create a small project")
    .argument("[dir]", "where", ".")
    .option("--name <name>", "name of the swarm", "desk")
    .option("--force", "overwrite existing files")
    .addOption(json())
    .action(async (directory, options) =>
      done(await (await import("./commands/init.js")).runInit(directory, options, terminal)),
    );

  program
    .command("config")
    .description("show the effective settings and their sources")
    .addOption(config())
    .option("--changed", "show only settings that differ from their defaults")
    .addOption(json())
    .action(async (options) =>
      done(await (await import("./commands/config.js")).runConfig(options, terminal)),
    );

  program
    .command("register")
    .description("register mailroom as the handler for swarm:// links")
    .option("--print", "only print what would be written")
    .addOption(json())
    .action(async (options) =>
      done(await (await import("./commands/register.js")).runRegister(options, terminal)),
    );

  program
    .command("version")
    .description("show the versions of Mailroom and of the protocol")
    .addOption(json())
    .action(async (options: CommonOptions) => {
      const { versions } = await import("../server/control.js");
      const found = versions();
      if (options.json === true) terminal.json(found);
      else terminal.out(`mailroom ${found.mailroom} (MAIL ${found.protocol}, Node ${found.node})`);
      done(EXIT.ok);
    });

  program
    .command("db-init", { hidden: true })
    .description("not needed: the store is created when it is first opened")
    .action(() => {
      terminal.out("nothing to do: the store is created when it is first opened");
      done(EXIT.ok);
    });

  return program;
}
