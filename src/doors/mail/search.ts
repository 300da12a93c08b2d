/**
 * Search in what was said. The index follows the journals when a caller searches, in small slices. Between searches nothing
 * is indexed.
 */
import type { Clock, Report } from "../../base/index.js";
import { type Entry, entriesOf, type InstanceId, type Store } from "../../engine/index.js";
import type { NextTurn } from "../../extension/index.js";
import { type JournalKey, systemLoop } from "../../journal/index.js";
import type { MAILMessage } from "../../mail/index.js";
import type { FoundEntry, SearchableEntry, SearchIndex, SearchQuery } from "../../store/index.js";
import { isTaskJournal } from "./feed/hub.js";

/** Rows and characters that are indexed before other work may run, and the pause after them in milliseconds. */
const ROWS = 64;
const CHARACTERS = 256 * 1024;
const PAUSE = 5;
/** How long a search waits for the index to catch up, in milliseconds. */
const PATIENCE = 1_000;
const OWNERS = 10_000;

export interface SearchParts {
  readonly store: Pick<Store, "readAll" | "position" | "tasks">;
  readonly index: () => SearchIndex;
  readonly clock: Clock;
  readonly report: Report;
}

export interface SearchResult {
  readonly found: readonly FoundEntry[];
  readonly complete: boolean;
  readonly progress: number;
}

export class TaskSearch {
  readonly #parts: SearchParts;
  readonly #owners = new Map<JournalKey, InstanceId>();
  #catchingUp: Promise<void> | undefined;
  #closed = false;

  constructor(parts: SearchParts) {
    this.#parts = parts;
  }

  async find(query: SearchQuery, nextTurn: NextTurn): Promise<SearchResult> {
    const { store, index, clock } = this.#parts;
    const end = await store.position();
    if (index().position < end) {
      this.#catchingUp ??= this.#catchUp().finally(() => {
        this.#catchingUp = undefined;
      });
      let cancel = () => {};
      const late = new Promise<void>((resolve) => {
        cancel = clock.after(PATIENCE, resolve);
      });
      await Promise.race([this.#catchingUp, late]);
      cancel();
    }
    const { position } = index();
    const complete = position >= end;
    const progress = complete ? 1 : Math.min(0.999, position / Math.max(1, end));
    const found: FoundEntry[] = [];
    for (const part of index().find(query)) {
      found.push(...part);
      await nextTurn();
      if (this.#closed) break;
    }
    return { found, complete, progress };
  }

  /** A task that retention removed is no longer found. */
  forget(key: JournalKey): void {
    this.#parts.index().remove(key);
  }

  close(): void {
    this.#closed = true;
  }

  async #catchUp(): Promise<void> {
    const { store, index, clock, report } = this.#parts;
    try {
      for (let after = index().position; !this.#closed; ) {
        const rows = await store.readAll(after, ROWS, CHARACTERS);
        const last = rows.at(-1);
        if (last === undefined) return;
        const entries: SearchableEntry[] = [];
        for (const row of rows) {
          if (!isTaskJournal(row.journal)) continue;
          const own = entriesOf(row);
          const instance = await this.#ownerOf(row.journal, own[0]);
          if (instance === undefined) continue;
          for (const [at, entry] of own.entries()) {
            const searchable = toSearchable(entry);
            if (searchable === undefined || searchable.text === "") continue;
            entries.push({
              key: row.journal,
              instance,
              number: row.first + at,
              kind: entry.t,
              at: entry.at,
              ...searchable,
            });
          }
        }
        if (this.#closed) return;
        index().add(entries, last.position);
        after = last.position;
        await new Promise<void>((resolve) => clock.after(PAUSE, () => systemLoop.soon(resolve)));
      }
    } catch (cause) {
      if (!this.#closed)
        report({ code: "listener_failed", message: `indexing failed: ${String(cause)}`, cause });
    }
  }

  async #ownerOf(key: JournalKey, first: Entry | undefined): Promise<InstanceId | undefined> {
    const known = this.#owners.get(key);
    if (known !== undefined) return known;
    const owner =
      first?.t === "opened" ? first.task.instance : (await this.#parts.store.tasks.byKey(key))?.instance;
    if (owner === undefined) return undefined;
    if (this.#owners.size >= OWNERS) this.#owners.clear();
    this.#owners.set(key, owner);
    return owner;
  }
}

type Searchable = Pick<SearchableEntry, "agent" | "from" | "to" | "text">;

/** What people can read of an entry. */
function toSearchable(entry: Entry): Searchable | undefined {
  switch (entry.t) {
    case "sent":
      return inMessage(entry.message);
    case "turn":
      return entry.text === undefined
        ? undefined
        : { agent: entry.agent, from: entry.agent, text: entry.text };
    case "turn_failed":
      return { agent: entry.agent, from: entry.agent, text: entry.message };
    case "result":
    case "action_finished":
      return { agent: entry.agent, to: entry.agent, text: `${entry.name} ${entry.content}` };
    case "paused":
    case "completed":
    case "failed":
    case "cancelled":
      return inMessage(entry.message);
    default:
      return undefined;
  }
}

function inMessage({ message }: MAILMessage): Searchable {
  const { sender, subject, body } = message;
  const recipients = "recipients" in message ? message.recipients : [message.recipient];
  return {
    ...(sender.address_type === "agent" && { agent: sender.address }),
    from: sender.address,
    to: recipients.map(({ address }) => address).join(", "),
    text: `${subject}\n${body}`,
  };
}
