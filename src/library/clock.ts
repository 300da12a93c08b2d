import { randomUUID } from "node:crypto";
import { uuidv7 } from "uuidv7";
import type { Ids } from "../journal/ports.js";

export { systemClock } from "../journal/system.js";

export const systemIds: Ids = { uuid: () => randomUUID(), ordered: () => uuidv7() };
