/** The routes about other swarms: see README.md. */
export type { FederationDoor } from "./door.js";
export { federationRoutes } from "./extension.js";
export { swarmRoutes } from "./routes/swarms.js";
export type { SwarmListing, SwarmRegistration, SwarmRegistry } from "./swarm-listing.js";
