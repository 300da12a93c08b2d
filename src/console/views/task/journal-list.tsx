/** Every entry on one line. */
import { useMemo, useState } from "preact/hooks";
import type { OpenTask } from "../../data/journal.js";
import { isFailure, kindText, lineText, summaryText, whoText } from "../../model/entry-words.js";
import { clock } from "../../model/words.js";
import { Text } from "../../ui/text.js";
import { VirtualRows } from "../../ui/virtual.js";

export function JournalList({
  task,
  selected,
  onSelect,
}: {
  readonly task: OpenTask;
  readonly selected: number | undefined;
  readonly onSelect: (n: number) => void;
}) {
  const [text, setText] = useState("");
  const [kind, setKind] = useState("");
  const version = task.version.value;
  const rows = useMemo(() => {
    const words = text.toLowerCase();
    if (words === "" && kind === "") return task.entries;
    return task.entries.filter(
      (entry) =>
        (kind === "" || entry.t === kind) && (words === "" || lineText(entry).toLowerCase().includes(words)),
    );
  }, [version, text, kind]);
  const kinds = useMemo(() => [...new Set(task.entries.map(({ t }) => t))], [version]);
  const at = selected === undefined ? undefined : rows.findIndex(({ n }) => n === selected);
  return (
    <>
      <div class="journal-bar">
        <input
          class="field"
          aria-label="Filter by text"
          placeholder="Filter by agent or text"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <select
          class="field"
          aria-label="Kind of entry"
          value={kind}
          onChange={(event) => setKind(event.currentTarget.value)}
        >
          <option value="">all kinds</option>
          {kinds.map((each) => (
            <option value={each} key={each}>
              {kindText(each)}
            </option>
          ))}
        </select>
        <span class="grow" />
        <span class="dim num">
          {rows.length} of {task.entries.length}
        </span>
      </div>
      <VirtualRows
        count={rows.length}
        rowHeight={27}
        label="Journal"
        role="listbox"
        selected={at}
        render={(index) => {
          const entry = rows[index];
          if (entry === undefined) return null;
          return (
            <div
              role="option"
              tabIndex={-1}
              aria-selected={entry.n === selected}
              class={`journal-row ${entry.n === selected ? "selected" : ""}`}
              onClick={() => onSelect(entry.n)}
              onKeyDown={() => {}}
            >
              <span class="right dim mono">{entry.n}</span>
              <span class="dim mono">{clock(entry.at)}</span>
              <span class="cut">{kindText(entry.t)}</span>
              <span class="cut dim">
                <Text>{whoText(entry)}</Text>
              </span>
              <span class={`cut ${isFailure(entry) ? "bad" : ""}`}>
                <Text>{summaryText(entry)}</Text>
              </span>
            </div>
          );
        }}
      />
    </>
  );
}
