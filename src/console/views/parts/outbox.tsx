/** Mail on its way to other servers: what waits and why, what was delivered, refused or given up. */
import { useState } from "preact/hooks";
import { request } from "../../data/api.js";
import type { OutboxItem, OutboxPage } from "../../data/shapes.js";
import { useRequest } from "../../data/use.js";
import { ago, dateAndTime, grouped, sinceThen } from "../../model/words.js";
import { href } from "../../nav/route.js";
import { Panel, Tabs, useNow } from "../../ui/kit.js";
import { Act, Table } from "../../ui/table.js";
import { Text } from "../../ui/text.js";

type Status = OutboxItem["status"];

const NAMES: Readonly<Record<Status, string>> = {
  waiting: "Waiting",
  delivered: "Delivered",
  refused: "Refused",
  expired: "Given up",
};

const EMPTY: Readonly<Record<Status, string>> = {
  waiting: "No mail waits.",
  delivered: "No mail was delivered lately.",
  refused: "No mail was refused.",
  expired: "No mail was given up.",
};

interface OutboxProps {
  readonly queue: string;
  readonly title: string;
  /** Only mail to this one. */
  readonly target?: string;
}

export function Outbox({ queue, title, target }: OutboxProps) {
  const [status, setStatus] = useState<Status>("waiting");
  const page = useRequest<OutboxPage>("admin/outbox", { queue, status, target, limit: 100 }, 4_000);
  const now = useNow();
  if (page.error !== undefined && page.value === undefined) return null;
  // The counts are those of the whole queue.
  const counts = target === undefined ? page.value?.counts : undefined;
  const tabs = (["waiting", "delivered", "refused", "expired"] as const).map((id) => ({
    id,
    name: NAMES[id],
    count: counts === undefined ? undefined : grouped(counts[id]),
  }));
  const items = (page.value?.items ?? []).filter((item) => item.status === status);
  return (
    <Panel title={title} note={<Tabs label={title} value={status} tabs={tabs} onPick={setStatus} />}>
      {items.length === 0 ? (
        <p class="inside dim">{EMPTY[status]}</p>
      ) : (
        <Table
          label={title}
          columns={[
            "To",
            "Subject",
            "Task",
            "Tries>",
            status === "waiting" ? "Next try" : "Ended",
            "Deadline",
            "Reason",
            "",
          ]}
        >
          {items.map((item) => (
            <Item key={item.id} item={item} now={now} onDone={page.again} />
          ))}
        </Table>
      )}
    </Panel>
  );
}

function Item({
  item,
  now,
  onDone,
}: {
  readonly item: OutboxItem;
  readonly now: number;
  readonly onDone: () => void;
}) {
  const path = `admin/outbox/${encodeURIComponent(item.id)}`;
  return (
    <tr>
      <td>
        <b>
          <Text>{item.to ?? item.target}</Text>
        </b>
      </td>
      <td>
        <Text>{item.subject ?? ""}</Text>
      </td>
      <td>
        {item.task_key !== null && (
          <a class="link mono" href={href("all", item.task_key)}>
            {item.task_key.slice(0, 8)}
          </a>
        )}
      </td>
      <td class="right">{item.attempts}</td>
      <td class="nowrap">
        {item.status === "waiting"
          ? nextTry(item, now)
          : item.finished_at === null
            ? ""
            : sinceThen(now - item.finished_at)}
      </td>
      <td class="dim nowrap">{item.deadline_at === null ? "–" : dateAndTime(item.deadline_at)}</td>
      <td class={item.status === "delivered" ? "dim" : "wait"}>
        <Text>{item.reason ?? ""}</Text>
      </td>
      <td class="right nowrap">
        {item.status === "waiting" && (
          <>
            <Act
              name="Try now"
              done="The server tries now."
              run={() => request(`${path}/retry`, { method: "POST" })}
              after={onDone}
            />{" "}
            <Act
              name="Give up"
              danger
              sure
              done="Given up. The sender is notified."
              run={() => request(`${path}/abandon`, { method: "POST" })}
              after={onDone}
            />
          </>
        )}
      </td>
    </tr>
  );
}

export function nextTry({ due_at }: OutboxItem, now: number): string {
  return due_at <= now ? "now" : `in ${ago(due_at - now)}`;
}
