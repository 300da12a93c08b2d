/** `mailroom console`: prints a link to the console of the running server that signs in once. */
import { z } from "zod";
import { MailroomError } from "../../base/index.js";
import { CONSOLE_CONTROL_PATH } from "../../doors/console/index.js";
import { requireLocalServer } from "../../server/control.js";
import { resolveDataDirectory } from "../data-directory.js";
import { EXIT, type ExitCode } from "../exit.js";
import type { DataOptions } from "../options.js";
import type { Terminal } from "../terminal.js";

export interface ConsoleOptions extends DataOptions {
  readonly as?: string;
}

const Link = z.object({ url: z.string(), expires: z.number(), role: z.string(), id: z.string() });
const Refused = z.object({ detail: z.string() });

export async function runConsole(options: ConsoleOptions, terminal: Terminal): Promise<ExitCode> {
  const { data } = await resolveDataDirectory(options, terminal);
  const server = await requireLocalServer(data, (line) => terminal.note(line));
  try {
    const response = await server.fetch(`http://localhost${CONSOLE_CONTROL_PATH}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(options.as === undefined ? {} : { as: options.as }),
    });
    const body: unknown = await response.json();
    if (!response.ok) {
      const refused = Refused.safeParse(body);
      const switchedOff = "this server has no console: 'console.enabled' is false";
      throw new MailroomError(
        "usage",
        response.status === 404 || !refused.success ? switchedOff : refused.data.detail,
      );
    }
    const link = Link.parse(body);
    if (options.json === true) terminal.json(link);
    else {
      terminal.out(link.url);
      terminal.note(`signs in once as ${link.role}:${link.id}, within a minute`);
    }
    return EXIT.ok;
  } finally {
    await server.close();
  }
}
