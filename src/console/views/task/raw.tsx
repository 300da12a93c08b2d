/** Entries as JSON. */
import type { OpenTask } from "../../data/journal.js";
import { Json } from "../../ui/json.js";
import { Copy } from "../../ui/kit.js";

const SHOWN = 100;

export function Raw({ task, selected }: { readonly task: OpenTask; readonly selected: number | undefined }) {
  void task.version.value;
  const first = task.entries[0]?.n ?? 1;
  const from = Math.max(0, selected === undefined ? task.entries.length - SHOWN : selected - first - 10);
  const entries = task.entries.slice(from, from + SHOWN);
  return (
    <div class="raw-view scroll" tabIndex={0} role="region" aria-label="Raw entries">
      <div class="row-of">
        <span class="dim">
          Entries {entries[0]?.n ?? 0} to {entries.at(-1)?.n ?? 0} of {task.last}
        </span>
        <Copy text={entries.map((entry) => JSON.stringify(entry)).join("\n")} label="Copy these" />
      </div>
      {entries.map((entry) => (
        <Json value={entry} open={entry.n === selected ? 3 : 0} key={entry.n} />
      ))}
    </div>
  );
}
