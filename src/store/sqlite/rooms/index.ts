import type { Room } from "../room.js";
import { a2aRoom } from "./a2a.js";
import { authRoom } from "./auth.js";
import { conversationsRoom } from "./conversations.js";
import { engineRoom } from "./engine.js";
import { federationRoom } from "./federation.js";
import { httpRoom } from "./http.js";
import { journalRoom } from "./journal.js";
import { memoryRoom } from "./memory.js";
import { meshRoom } from "./mesh.js";
import { outboxRoom } from "./outbox.js";

/** Every room that has tables, in the order in which their migrations run. A new room is added at the end. */
export const ROOMS: readonly Room[] = [
  journalRoom,
  engineRoom,
  authRoom,
  httpRoom,
  outboxRoom,
  conversationsRoom,
  meshRoom,
  federationRoom,
  memoryRoom,
  a2aRoom,
];
