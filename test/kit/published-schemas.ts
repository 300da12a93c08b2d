/**
 * The one place that checks all emitted entries against the published schemas: `TestTask` for every decision,
 * `checkedStore` for every commit.
 */
import type { Entry } from "../../src/engine/task/entries.js";
import type { MAILMessage } from "../../src/mail/message.js";
import { checkMailMessage } from "../../src/mail/validate.js";

/** Returns the schema violations of entries, as read back from the journal. */
export function problemsOf(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => {
    const problems = nullsIn(entry, "");
    const message = messageOf(entry);
    if (message !== undefined) {
      const checked = checkMailMessage(message);
      if (!checked.ok) problems.push(...checked.errors.map(({ path, message: what }) => `${path} ${what}`));
    }
    return problems.map((problem) => `${entry.t}: ${problem} in ${JSON.stringify(entry)}`);
  });
}

function messageOf(entry: Entry): MAILMessage | undefined {
  switch (entry.t) {
    case "sent":
    case "paused":
    case "completed":
    case "failed":
    case "cancelled":
      return entry.message;
    default:
      return undefined;
  }
}

/** Unknown values must be absent, not null. Arguments belong to agents, and a limit of null means no limit. */
function nullsIn(value: unknown, path: string): string[] {
  if (value === null) return /\/max(?:Steps|Cost|Tokens|Calls)$/.test(path) ? [] : [`${path} is null`];
  if (typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "args" ? [] : nullsIn(inner, `${path}/${key}`),
  );
}
