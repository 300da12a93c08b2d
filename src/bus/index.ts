/** Buses that carry notes between the parts of a mailroom. */
export { createLocalBus } from "./local.js";
