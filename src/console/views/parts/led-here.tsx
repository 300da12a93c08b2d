/** The last messages of a task: what led to where it is. */
import { useEffect, useState } from "preact/hooks";
import { isAdmin, request } from "../../data/api.js";
import type { JournalPage } from "../../data/shapes.js";
import type { JournalEntry } from "../../model/journal-entry.js";
import { recipientsText, senderText } from "../../model/mail-words.js";
import { Markdown, Text } from "../../ui/text.js";

export function LedHere({
  taskKey,
  taskId,
  number,
}: {
  readonly taskKey: string;
  readonly taskId: string;
  readonly number: number;
}) {
  const [entries, setEntries] = useState<readonly JournalEntry[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const path = isAdmin()
        ? `admin/tasks/${encodeURIComponent(taskKey)}/journal`
        : `tasks/${encodeURIComponent(taskId)}/journal`;
      request<JournalPage>(path, {
        query: { before: Number.MAX_SAFE_INTEGER, limit: 60 },
        signal: stop.signal,
      }).then(
        (page) => setEntries(page.entries),
        () => {},
      );
    }, 120);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [taskKey, number]);
  const mail = entries.flatMap((entry) => {
    if (entry.t === "completed")
      return [
        { n: entry.n, from: entry.call?.agent ?? "system", to: "owner", body: entry.message.message.body },
      ];
    if (entry.t === "failed") return [{ n: entry.n, from: "failed", to: "", body: entry.reason }];
    if (entry.t !== "sent" || entry.message.message.sender.address_type === "system") return [];
    return [
      {
        n: entry.n,
        from: senderText(entry.message),
        to: recipientsText(entry.message),
        body: entry.message.message.body,
      },
    ];
  });
  // The notice that a task has ended repeats its answer.
  const shown = mail.filter(({ body }, index) => body !== mail[index - 1]?.body).slice(-3);
  if (shown.length === 0) return null;
  return (
    <section class="side-part" aria-label="What led here">
      <header class="side-head">
        <h3>What led here</h3>
        <span class="num">
          #{shown[0]?.n}
          {shown.length > 1 && ` – #${shown.at(-1)?.n}`}
        </span>
      </header>
      {shown.map(({ n, from, to, body }) => (
        <article class="card" key={n}>
          <header>
            <b>
              <Text>{from}</Text>
            </b>
            {to !== "" && (
              <span class="dim">
                → <Text>{to}</Text>
              </span>
            )}
            <span class="dim num push">#{n}</span>
          </header>
          <div class="clamp">
            <Markdown text={body.slice(0, 600)} />
          </div>
        </article>
      ))}
    </section>
  );
}
