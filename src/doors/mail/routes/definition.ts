/** The definition of the swarm: read and replace. */
import { defineRoute, MAIL_ADMINS, NO_INPUT, type Route, SwarmReceipt } from "../../../extension/index.js";
import type { MailDoor } from "../door.js";
import { LoadRequest, SwarmDump } from "../schemas/server.js";
import { limitsData, swarmData } from "../swarm-data.js";

export function definitionRoutes({ mailroom, definition }: MailDoor): Route[] {
  return [
    defineRoute({
      ...NO_INPUT,
      id: "dumpSwarm",
      method: "GET",
      path: "/swarms/dump",
      tag: "swarms",
      summary: "Show the swarm's definition",
      access: MAIL_ADMINS,
      answers: { 200: { description: "The definition as data.", schema: SwarmDump } },
      async handle({ request }) {
        const { swarm } = mailroom;
        request.log.info({ swarm: swarm.name, agents: swarm.agents.map(({ name }) => name) }, "swarm dumped");
        return {
          status: 200,
          body: {
            status: "dumped",
            swarm_name: swarm.name,
            swarm: swarmData(swarm),
            limits: limitsData(mailroom.runtime.limits),
          },
        };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "loadSwarm",
      method: "POST",
      path: "/swarms/load",
      tag: "swarms",
      summary: "Replace the swarm's definition",
      description:
        "The new one has the same name and is checked first. It is kept and survives restarts until the configured " +
        "definition changes. Running tasks continue with it.",
      access: MAIL_ADMINS,
      body: LoadRequest,
      idempotent: true,
      answers: { 200: { description: "The definition is in force.", schema: SwarmReceipt } },
      errors: ["bad_swarm_file", "swarm_name_differs"],
      handle: ({ body, request }, caller) =>
        request.once(caller, async (remember) => {
          const answer = {
            status: 200,
            body: { status: "success", swarm_name: mailroom.swarm.name },
          } as const;
          await definition.replace(body.json, remember({ kind: "answer", ...answer }));
          request.log.info({ admin: caller.principal.id }, "the swarm was replaced over HTTP");
          return answer;
        }),
    }),
  ];
}
