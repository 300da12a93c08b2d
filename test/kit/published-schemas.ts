/**
 * The one place where everything that the engine emits in any test is held against the published schemas: `TestTask`
 * puts the entries of every decision through it, `checkedStore` those of every commit.
 */
import type { Entry } from "../../src/engine/entries.js";
import type { MAILMessage } from "../../src/mail/message.js";
import { checkMailMessage } from "../../src/mail/validate.js";

/** What is wrong with the entries, as they would be read back from the journal. */
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

/** What is unknown is absent. Arguments are the agents' own, and `maxSteps: null` says that a limit was lifted. */
function nullsIn(value: unknown, path: string): string[] {
  if (value === null) return path === "/maxSteps" ? [] : [`${path} is null`];
  if (typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "args" ? [] : nullsIn(inner, `${path}/${key}`),
  );
}
