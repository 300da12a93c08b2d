/** What MAP asks of the engine that runs beside it. */
import type { Runtime } from "../../engine/runtime/index.js";

export type SwarmSide = Pick<Runtime, "post" | "cancel" | "rules" | "remote">;
