/** What the command line makes of errors of the mesh. */
import { CliError, EXIT, type ExitCode } from "../exit.js";

/** The exit codes of every command: see docs/cli.md. */
export function explained(code: string, message: string): CliError {
  const exits: Readonly<Record<string, ExitCode>> = {
    invalid_request: EXIT.usage,
    ambiguous_swarm: EXIT.usage,
    peer_unreachable: EXIT.unreachable,
    join_refused: EXIT.refused,
    not_master: EXIT.refused,
    not_allowed: EXIT.refused,
    transfer_open: EXIT.refused,
  };
  const hints: Readonly<Record<string, string>> = {
    ambiguous_swarm: "name it with --swarm, or in the variable SWARM_ID",
    not_initialised: "run 'mailroom mesh init' first",
    is_master: "hand the swarm over with 'mesh transfer', or end it with 'mesh dissolve'",
  };
  const hint = hints[code];
  return new CliError(code, message, {
    exit: exits[code] ?? EXIT.failure,
    ...(hint !== undefined && { hint }),
  });
}
