/** An entry of a task's journal as the server sends it: the entry itself with its number. */
import type { Entry } from "../../engine/pure.js";

export type JournalEntry = Entry & { readonly n: number };
