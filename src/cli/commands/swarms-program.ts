/** The words of `mailroom swarms`. What they do is loaded when they are used. */
import type { Command } from "commander";
import type { ExitCode } from "../exit.js";
import { withPlace, withServer } from "../shared-options.js";
import type { Terminal } from "../terminal.js";

const ADD_HELP = `
Tokens for other swarms are looked up in the environment of the server when they are used. Without an option that is
SWARM_AUTH_TOKEN_<NAME>.

  mailroom swarms add beta https://beta.example.com
  mailroom swarms add beta http://127.0.0.1:8102 --token-env BETA_TOKEN --volatile`;

export function addSwarms(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const swarms = program
    .command("swarms")
    .description("the other swarms that a running server knows; for admins");
  const load = async () => await import("./swarms.js");
  const add = (name: string, description: string) =>
    withPlace(withServer(swarms.command(name).description(description)));
  const withTerms = (command: Command) =>
    command
      .option("--token-env <variable>", "where the server finds its token for that swarm")
      .option("--auth-token <token>", "that token itself: used until the server stops, kept nowhere")
      .option("--no-auth", "no token: nothing can be sent to it")
      .option("--volatile", "forget the swarm when the server stops");
  add("list", "which swarms are known, and how they are").action(async (options) =>
    done(await (await load()).listSwarms(options, terminal)),
  );
  withTerms(add("add", "make a swarm known, or change what is known about it"))
    .argument("<name>", "what it is called, there and here")
    .argument("<base-url>", "https://…; http:// for this machine and for hosts on the allow-list")
    .addHelpText("after", ADD_HELP)
    .action(async (name, url, options) => done(await (await load()).addSwarm(name, url, options, terminal)));
  add("remove", "forget a swarm; mail on its way there comes back")
    .argument("<name>", "what it is called")
    .action(async (name, options) => done(await (await load()).removeSwarm(name, options, terminal)));
  add("ping", "ask swarms whether they are well; exit code 1 if one is not")
    .argument("[name]", "all of them if left out")
    .action(async (name, options) => done(await (await load()).pingSwarms(name, options, terminal)));
  add("proposals", "swarms that discovery found and nobody has decided about").action(async (options) =>
    done(await (await load()).listProposals(options, terminal)),
  );
  withTerms(add("accept", "register a swarm that was proposed"))
    .argument("<name>", "as 'swarms proposals' shows it")
    .action(async (name, options) => done(await (await load()).acceptProposal(name, options, terminal)));
  add("reject", "drop a swarm that was proposed")
    .argument("<name>", "as 'swarms proposals' shows it")
    .action(async (name, options) => done(await (await load()).rejectProposal(name, options, terminal)));
}
