/** The demonstration swarm and the examples that swarm files can name. */
export { exampleAgent } from "./agents/agents.js";
export { withExamples } from "./builtins.js";
export { demoSwarm } from "./swarm.js";
