/** What commands need of a server that they do not run: light, and without the server itself. */
export { type LocalServer, noServerOn, reachLocalServer } from "./control/connect-local.js";
export { controlPath } from "./control/path.js";
export { allTokens, TOKENS_PATH } from "./control/tokens-api.js";
export { atServerOr, requireLocalServer, retryWhileLocked } from "./control/wait-for-lock.js";
export { DEMO_SWARM, dataDirectoryFor, swarmFileOf } from "./data-directory.js";
export { versions } from "./version.js";
