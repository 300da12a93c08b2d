/**
 * supervisor → weather → supervisor → complete, as a swarm file whose agents are functions of a module next to it.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Build } from "./builds.js";

/** As in a user's project; the library is that of the measured build. */
const agents = (library: string): string => `
import { defineAgent } from ${JSON.stringify(library)};

export const supervisor = defineAgent({
  name: "supervisor",
  enableEntrypoint: true,
  canCompleteTasks: true,
  commTargets: ["weather"],
  run: (mail) => {
    if (mail.type === "response") mail.complete(mail.body);
    else mail.request("weather", "Forecast", mail.body);
  },
});

export const weather = defineAgent({
  name: "weather",
  commTargets: ["supervisor"],
  run: (mail) => mail.reply("sunny, 21 °C"),
});
`;

/** Writes the swarm file and its module; returns the path of the swarm file. */
export function writeSwarmFile(directory: string, { folder }: Build): string {
  const module = join(directory, "agents.mjs");
  writeFileSync(module, agents(pathToFileURL(join(folder, "dist", "index.js")).href));
  const agent = (name: string, to: string, more: object) => ({
    name,
    factory: `module:${module}#${name}`,
    comm_targets: [to],
    ...more,
  });
  const swarm = {
    name: "threehops",
    version: "1.0.0",
    entrypoint: "supervisor",
    agents: [
      agent("supervisor", "weather", { enable_entrypoint: true, can_complete_tasks: true }),
      agent("weather", "supervisor", {}),
    ],
  };
  const file = join(directory, "swarms.json");
  writeFileSync(file, JSON.stringify({ swarms: [swarm] }));
  return file;
}
