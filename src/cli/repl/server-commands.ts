/** Commands for the server, its swarms and the caller's identity. */

import { EXIT } from "../exit.js";
import { escapeControlCharacters } from "../terminal.js";
import { type ReplCommand, type ReplSession, show, usageError } from "./command.js";

const none = { usage: "", minimum: 0, maximum: 0 } as const;

/** Without a token the caller may still have an identity: in development mode the server assigns one. */
async function tellCaller({ client, signal, onCaller }: ReplSession): Promise<void> {
  if (onCaller !== undefined) onCaller(await client.whoami({ signal }).catch(() => undefined));
}

export const SERVER_COMMANDS: readonly ReplCommand[] = [
  {
    ...none,
    name: "ping",
    aliases: ["p"],
    summary: "show the server and its swarm",
    run: async (session) => {
      const info = await session.client.ping({ signal: session.signal });
      const swarm = typeof info.swarm === "string" ? info.swarm : (info.swarm?.name ?? "?");
      const protocol = info.protocol_version ?? info.version ?? "?";
      show(session, info, [
        `${info.status}: swarm ${escapeControlCharacters(swarm)}, MAIL ${escapeControlCharacters(protocol)}`,
      ]);
      return EXIT.ok;
    },
  },
  {
    ...none,
    name: "health",
    aliases: ["h"],
    summary: "show the server's health",
    run: async (session) => {
      const health = await session.client.getHealth({ signal: session.signal });
      show(session, health, [escapeControlCharacters(health.status)]);
      return EXIT.ok;
    },
  },
  {
    name: "health-update",
    aliases: ["hu"],
    usage: "STATUS",
    minimum: 1,
    maximum: 1,
    summary: "change the server's reported health (admin)",
    run: async (session, given) => {
      const health = await session.client.updateHealth(given.argument(0), { signal: session.signal });
      show(session, health, [escapeControlCharacters(health.status)]);
      return EXIT.ok;
    },
  },
  {
    name: "login",
    aliases: ["l"],
    usage: "TOKEN",
    minimum: 1,
    maximum: 1,
    summary: "use this token from now on",
    run: async (session, given) => {
      const caller = await session.client
        .login(given.argument(0), { signal: session.signal })
        .catch(async (error: unknown) => {
          await tellCaller(session);
          throw error;
        });
      session.onCaller?.(caller);
      show(session, caller, [`you are ${caller.role}:${escapeControlCharacters(caller.id)}`]);
      return EXIT.ok;
    },
  },
  {
    ...none,
    name: "logout",
    aliases: ["lo"],
    summary: "drop the token",
    run: async (session) => {
      session.client.logout();
      await tellCaller(session);
      show(session, { status: "logged out" }, ["token dropped"]);
      return EXIT.ok;
    },
  },
  {
    ...none,
    name: "whoami",
    aliases: ["me", "id"],
    summary: "show your identity",
    run: async (session) => {
      const caller = await session.client.whoami({ signal: session.signal });
      show(session, caller, [`${caller.role}:${escapeControlCharacters(caller.id)}`]);
      return EXIT.ok;
    },
  },
  {
    ...none,
    name: "status",
    aliases: ["s"],
    summary: "show the swarm's status and whether a task of yours is running",
    run: async (session) => {
      const status = await session.client.getStatus({ signal: session.signal });
      show(session, status, [
        `swarm ${escapeControlCharacters(status.swarm.name)}: ${escapeControlCharacters(status.swarm.status)}`,
        `active users: ${status.active_users}`,
        `task running: ${status.user_task_running ? "yes" : "no"}`,
      ]);
      return EXIT.ok;
    },
  },
  {
    ...none,
    name: "swarms-get",
    aliases: ["sg", "swarms-g"],
    summary: "list the registered swarms",
    run: async (session) => {
      const swarms = await session.client.getSwarms({ signal: session.signal });
      const lines = swarms.map(
        (swarm) =>
          `${escapeControlCharacters(swarm.swarm_name)}  ${escapeControlCharacters(swarm.base_url ?? "")}  ${swarm.is_active === false ? "not reachable" : "active"}`,
      );
      show(session, { swarms }, lines.length === 0 ? ["no swarms are registered"] : lines);
      return EXIT.ok;
    },
  },
  {
    name: "swarm-register",
    aliases: ["sr", "swarm-r"],
    usage: "NAME BASE_URL [AUTH_TOKEN] [-V]",
    minimum: 2,
    maximum: 3,
    options: { volatile: { type: "boolean", short: "V" } },
    summary: "register another swarm (admin); -V: only until the next start",
    run: async (session, given) => {
      const authToken = given.arguments[2];
      const receipt = await session.client.registerSwarm({
        name: given.argument(0),
        baseUrl: given.argument(1),
        ...(authToken !== undefined && { authToken }),
        volatile: given.flag("volatile"),
        signal: session.signal,
      });
      show(session, receipt, [
        `${escapeControlCharacters(receipt.swarm_name)}: ${escapeControlCharacters(receipt.status)}`,
      ]);
      return EXIT.ok;
    },
  },
  {
    ...none,
    name: "swarm-dump",
    aliases: ["sd", "swarm-d"],
    summary: "show the active definition (admin)",
    run: async (session) => {
      const dump = await session.client.dumpSwarm({ signal: session.signal });
      show(session, dump, [escapeControlCharacters(JSON.stringify(dump.swarm ?? dump, undefined, 2))]);
      return EXIT.ok;
    },
  },
  {
    name: "swarm-load-from-json",
    aliases: ["sl", "swarm-l"],
    usage: "JSON",
    minimum: 1,
    maximum: 1,
    summary: "replace the active definition (admin)",
    run: async (session, given) => {
      const receipt = await session.client.loadSwarm(given.argument(0), { signal: session.signal });
      show(session, receipt, [
        `${escapeControlCharacters(receipt.swarm_name)}: ${escapeControlCharacters(receipt.status)}`,
      ]);
      return EXIT.ok;
    },
  },
  {
    name: "responses",
    aliases: ["r", "resp"],
    usage: "INPUT_JSON TOOLS_JSON [-i INSTRUCTIONS] [-k JSON]",
    minimum: 2,
    maximum: 2,
    options: {
      instructions: { type: "string", short: "i" },
      "previous-response-id": { type: "string" },
      "tool-choice": { type: "string" },
      "parallel-tool-calls": { type: "boolean" },
      kwargs: { type: "string", short: "k" },
    },
    oldFlags: {
      "-pr": "--previous-response-id",
      "-tc": "--tool-choice",
      "-ptc": "--parallel-tool-calls",
    },
    summary: "the reference's debugging route; Mailroom does not serve it",
    async run(session, given) {
      const json = (what: string, text: string | undefined): unknown => {
        if (text === undefined) return undefined;
        try {
          return JSON.parse(text);
        } catch {
          throw usageError(this, `${what} is not JSON`);
        }
      };
      const request = {
        input: json("INPUT_JSON", given.argument(0)),
        tools: json("TOOLS_JSON", given.argument(1)),
        instructions: given.text("instructions"),
        previous_response_id: given.text("previous-response-id"),
        tool_choice: given.text("tool-choice"),
        ...(given.flag("parallel-tool-calls") && { parallel_tool_calls: true }),
        kwargs: json("-k", given.text("kwargs")),
      };
      const answer = await session.client.postResponses(request, { signal: session.signal });
      show(session, answer, [escapeControlCharacters(JSON.stringify(answer, undefined, 2))]);
      return EXIT.ok;
    },
  },
];
