/** How federation behaves; every field is configuration (law 7). Times are milliseconds. */

export interface FederationSettings {
  /** Destinations beyond the public internet: see `net`. Loopback is always allowed for registered swarms. */
  readonly allow: readonly string[];
  /** External ids of peers and the swarms they stand for (decisions E1). */
  readonly identities: Readonly<Record<string, string>>;
  /** How long the delivery of a message is tried before its sender is told. */
  readonly deliveryTime: number;
  /** The same for answers and for the end of a task: somebody over there waits for them. */
  readonly answerTime: number;
  /** One attempt. */
  readonly attemptTime: number;
  readonly healthInterval: number;
  readonly healthTime: number;
  /** Failed checks in a row after which a swarm is inactive, and good ones after which it is active again. */
  readonly failuresToInactive: number;
  readonly successesToActive: number;
  /** `required` refuses wrappers without a signature by the key that was pinned at registration (decisions E9). */
  readonly signatures: "optional" | "required";
  /** What becomes of swarms that discovery finds (decisions E10). */
  readonly discovery: "propose" | "register" | "off";
  /** Swarms that a message may have come through. */
  readonly maxHops: number;
  /** Messages of one peer in a minute; 0 for no limit. */
  readonly requestsPerMinute: number;
  /** Messages to one swarm that may wait. */
  readonly maxWaiting: number;
  /** Attempts at once: in all, and to one swarm. */
  readonly attempts: number;
  readonly attemptsPerSwarm: number;
  /** How long ids of received messages are remembered. Longer than any peer tries to deliver one. */
  readonly remember: number;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export const DEFAULT_FEDERATION_SETTINGS: FederationSettings = {
  allow: [],
  identities: {},
  deliveryTime: 2 * MINUTE,
  answerTime: DAY,
  attemptTime: 15_000,
  healthInterval: 30_000,
  healthTime: 5_000,
  failuresToInactive: 3,
  successesToActive: 1,
  signatures: "optional",
  discovery: "propose",
  maxHops: 8,
  requestsPerMinute: 60_000,
  maxWaiting: 10_000,
  attempts: 256,
  attemptsPerSwarm: 32,
  remember: 7 * DAY,
};
