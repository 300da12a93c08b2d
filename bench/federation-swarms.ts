/** Two swarms as a swarm file whose agents are functions of this module: a desk here asks a clerk elsewhere. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineAgent } from "../src/index.js";

/** Swarms that the desk may write to; the user's message names one. */
const FAR = ["beta", "dead", "hanging"] as const;
const ANSWER = "sunny, 21 °C";
const clerks = FAR.map((swarm) => `clerk@${swarm}`);

export const desk = defineAgent({
  name: "desk",
  enableEntrypoint: true,
  canCompleteTasks: true,
  enableInterswarm: true,
  commTargets: clerks,
  run: (mail) => {
    // An answer, or the notice that none came.
    if (mail.type === "response" || mail.fromType === "system") mail.complete(mail.body);
    else mail.request(`clerk@${mail.body}`, "Forecast", "Tokyo?");
  },
});

export const clerk = defineAgent({
  name: "clerk",
  enableEntrypoint: true,
  canCompleteTasks: true,
  enableInterswarm: true,
  commTargets: ["desk@alpha"],
  run: (mail) => mail.reply(ANSWER),
});

/** Writes the swarm file; returns its path. */
export function writeSwarmFile(directory: string): string {
  const here = fileURLToPath(import.meta.url);
  const swarm = (name: string, agent: string, targets: readonly string[]) => ({
    name,
    version: "1.0.0",
    entrypoint: agent,
    enable_interswarm: true,
    agents: [
      {
        name: agent,
        factory: `module:${here}#${agent}`,
        comm_targets: targets,
        enable_entrypoint: true,
        enable_interswarm: true,
        can_complete_tasks: true,
      },
    ],
  });
  const file = join(directory, "swarms.json");
  const swarms = [swarm("alpha", "desk", clerks), swarm("beta", "clerk", ["desk@alpha"])];
  writeFileSync(file, JSON.stringify({ swarms }));
  return file;
}
