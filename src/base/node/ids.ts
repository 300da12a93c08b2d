import { uuidv7 } from "uuidv7";
import type { Ids } from "../ids.js";

export const systemIds: Ids = { uuid: () => crypto.randomUUID(), ordered: () => uuidv7() };
