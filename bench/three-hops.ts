/** supervisor → weather → supervisor → complete, as a swarm file whose agents are functions of this module. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineAgent } from "../src/index.js";

export const QUESTION = "What is the weather in Tokyo?";
const FORECAST = "sunny, 21 °C";

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
  run: (mail) => mail.reply(FORECAST),
});

/** Writes the swarm file; returns its path. */
export function writeSwarmFile(directory: string): string {
  const here = fileURLToPath(import.meta.url);
  const agent = (name: string, to: string, more: object) => ({
    name,
    factory: `module:${here}#${name}`,
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
