/** What the routes about other swarms share. */
import type { Clock } from "../../base/index.js";
import type { ServerFacts } from "../../extension/index.js";
import type { Federation } from "../../federation/index.js";
import type { Mailroom } from "../../library/index.js";
import type { SwarmRegistry } from "./swarm-listing.js";

export interface FederationDoor {
  readonly mailroom: Mailroom;
  readonly server: ServerFacts;
  readonly clock: Clock;
  /** Absent when federation is off: then only the local swarm is listed. */
  readonly registry: SwarmRegistry | undefined;
}

export interface ActiveFederationDoor extends FederationDoor {
  readonly federation: Federation;
}
