/** Declares `mailroom token`. */
import type { Command } from "commander";
import type { ExitCode } from "../exit.js";
import { withDataDirectory } from "../options.js";
import type { Terminal } from "../terminal.js";

export function addTokens(program: Command, terminal: Terminal, done: (code: ExitCode) => void): void {
  const tokens = program.command("token").description("manage access tokens");
  const load = async () => await import("../commands/token.js");
  const add = (name: string, description: string) =>
    withDataDirectory(tokens.command(name).description(description));
  add("create", "create a token, which is shown once")
    .requiredOption("--role <role>", "user, admin, agent (another swarm) or member (one agent of this swarm)")
    .requiredOption("--id <id>", "user name, swarm name or agent name")
    .option("--label <text>", "note about its purpose")
    .action(async (options) => done(await (await load()).createToken(options, terminal)));
  add("list", "list all tokens, without their secrets").action(async (options) =>
    done(await (await load()).listTokens(options, terminal)),
  );
  add("revoke", "revoke a token")
    .argument("<id>", "id as listed by 'token list', or the token itself")
    .action(async (id, options) => done(await (await load()).revokeToken(id, options, terminal)));
}
