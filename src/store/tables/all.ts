import type { TableSet } from "../table-set.js";
import { a2aTables } from "./a2a.js";
import { approvalTables } from "./approvals.js";
import { authTables } from "./auth.js";
import { conversationTables } from "./conversations.js";
import { engineTables } from "./engine.js";
import { federationTables } from "./federation.js";
import { httpTables } from "./http.js";
import { journalTables } from "./journal.js";
import { memoryTables } from "./memory.js";
import { meshTables } from "./mesh.js";
import { outboxTables } from "./outbox.js";
import { usageTables } from "./usage.js";

/** All tables, in the order in which their migrations run. A new set is added at the end. */
export const TABLE_SETS: readonly TableSet[] = [
  journalTables,
  engineTables,
  authTables,
  httpTables,
  outboxTables,
  conversationTables,
  meshTables,
  federationTables,
  memoryTables,
  a2aTables,
  approvalTables,
  usageTables,
];
