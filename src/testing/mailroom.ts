import type { SwarmDefinition } from "../engine/index.js";
import { Mailroom, type MailroomOptions } from "../library/index.js";
import { seededIds } from "./seeded-ids.js";
import { VirtualClock } from "./virtual-clock.js";

/** Options of {@link openTestMailroom}: those of a mailroom, except its swarm and where it stores data. */
export type TestMailroomOptions = Omit<MailroomOptions, "swarm" | "data" | "durability">;

/**
 * Opens a mailroom in memory. Without `clock` its time does not advance, so no time limit expires; pass
 * a {@link VirtualClock} to advance it. Without `ids` its ids repeat from run to run.
 *
 * @example
 * const mailroom = await openTestMailroom(swarm);
 * const answer = await mailroom.user("ann").ask("hello");
 * await mailroom.close();
 */
export function openTestMailroom(
  swarm: SwarmDefinition,
  options: TestMailroomOptions = {},
): Promise<Mailroom> {
  return Mailroom.open({ clock: new VirtualClock(), ids: seededIds(1), ...options, swarm, data: false });
}
