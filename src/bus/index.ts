/** Buses that carry notes between the parts of a mailroom. */
export { createLocalBus, type LocalBusOptions } from "./local.js";
