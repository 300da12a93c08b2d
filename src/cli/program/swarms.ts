/** Declares `mailroom swarms`; its code is loaded on use. */
import type { Command } from "commander";
import type { ExitCode } from "../exit.js";
import { withDataDirectory, withServer } from "../options.js";
import type { Terminal } from "../terminal.js";

const ADD_HELP = `
The server reads its tokens for other swarms from its environment when it uses them. The default variable is
SWARM_AUTH_TOKEN_<NAME>.

  mailroom swarms add beta https://beta.example.com
  mailroom swarms add beta http://127.0.0.1:8102 --token-env BETA_TOKEN --volatile`;

export function addSwarms(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const swarms = program
    .command("swarms")
    .description("manage the other swarms that are registered at a running server (admins only)");
  const load = async () => await import("../commands/swarms.js");
  const add = (name: string, description: string) =>
    withDataDirectory(withServer(swarms.command(name).description(description)));
  const withTerms = (command: Command) =>
    command
      .option("--token-env <variable>", "environment variable of the server with its token for the swarm")
      .option("--auth-token <token>", "literal token; used until the server stops, never stored")
      .option("--no-auth", "register without a token; no mail can be sent")
      .option("--volatile", "remove the swarm when the server stops");
  add("list", "list registered swarms and their health").action(async (options) =>
    done(await (await load()).listSwarms(options, terminal)),
  );
  withTerms(add("add", "register a swarm, or change its registration"))
    .argument("<name>", "the swarm's own name")
    .argument("<base-url>", "https://…; http:// for this machine and for hosts on the allow-list")
    .addHelpText("after", ADD_HELP)
    .action(async (name, url, options) => done(await (await load()).addSwarm(name, url, options, terminal)));
  add("remove", "unregister a swarm; pending mail to it is returned")
    .argument("<name>", "the swarm's name")
    .action(async (name, options) => done(await (await load()).removeSwarm(name, options, terminal)));
  add("ping", "check the health of swarms; exit code 1 if a check fails")
    .argument("[name]", "the swarm's name (default: all swarms)")
    .action(async (name, options) => done(await (await load()).pingSwarms(name, options, terminal)));
  add("proposals", "list swarms that discovery found and that await a decision").action(async (options) =>
    done(await (await load()).listProposals(options, terminal)),
  );
  withTerms(add("accept", "register a proposed swarm"))
    .argument("<name>", "name as listed by 'swarms proposals'")
    .action(async (name, options) => done(await (await load()).acceptProposal(name, options, terminal)));
  add("reject", "discard a proposed swarm")
    .argument("<name>", "name as listed by 'swarms proposals'")
    .action(async (name, options) => done(await (await load()).rejectProposal(name, options, terminal)));
}
