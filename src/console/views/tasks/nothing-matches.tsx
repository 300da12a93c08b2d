/** A filtered list that is empty: which filter hides how many tasks, and how to remove it. */
import { useEffect, useState } from "preact/hooks";
import { countTasks, type TaskFilter } from "../../data/tasks.js";
import { plural } from "../../model/words.js";
import { setQuery } from "../../nav/route.js";
import { Text } from "../../ui/text.js";

export interface Filter {
  /** Of the query. */
  readonly names: readonly string[];
  readonly words: string;
  /** The others. */
  readonly without: TaskFilter;
}

function remove(names: readonly string[]): void {
  setQuery(Object.fromEntries(names.map((name) => [name, undefined])));
}

function hides(count: string | undefined): string {
  if (count === undefined) return "";
  const number = Number.parseInt(count, 10);
  if (number === 0) return "hides nothing by itself";
  return `hides ${plural(number, "task")}${count.endsWith("+") ? " or more" : ""}`;
}

interface NothingMatchesProps {
  readonly filter: TaskFilter;
  readonly filters: readonly Filter[];
}

export function NothingMatches({ filter, filters }: NothingMatchesProps) {
  const [counts, setCounts] = useState<ReadonlyMap<string, string>>(new Map());
  useEffect(() => {
    let isCurrent = true;
    setCounts(new Map());
    for (const { words, without } of filters) {
      countTasks(without).then(
        (count) => isCurrent && setCounts((before) => new Map(before).set(words, count)),
        () => {},
      );
    }
    return () => {
      isCurrent = false;
    };
  }, [filter]);
  return (
    <div class="empty">
      <h2>No task matches</h2>
      <ul class="hiding">
        {filters.map(({ names, words }) => (
          <li key={words}>
            <button type="button" class="chip on" onClick={() => remove(names)}>
              <Text>{words}</Text> ×
            </button>
            <span>{hides(counts.get(words))}</span>
          </li>
        ))}
      </ul>
      {filters.length > 1 && (
        <button type="button" class="button" onClick={() => remove(filters.flatMap(({ names }) => names))}>
          Clear all filters
        </button>
      )}
    </div>
  );
}
