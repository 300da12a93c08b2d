/** One other swarm: how it does, what it shares with this one, and the mail on its way to it. */
import { isAdmin } from "../../data/api.js";
import type { Peer, TaskSummary } from "../../data/shapes.js";
import { useRequest } from "../../data/use.js";
import { clock, dateAndTime, duration, grouped, plural, principalOf, sinceThen } from "../../model/words.js";
import { useKeys } from "../../nav/keys.js";
import { go, href } from "../../nav/route.js";
import { useTop } from "../../nav/title.js";
import { Icon } from "../../ui/icon.js";
import { Panel, StatusPill, useNow } from "../../ui/kit.js";
import { Table } from "../../ui/table.js";
import { Text } from "../../ui/text.js";
import { Checks, checksText } from "../parts/checks.js";
import { type Fact, FactList } from "../parts/facts.js";
import { Outbox } from "../parts/outbox.js";
import { Page } from "../parts/page.js";
import { PeerActs } from "./peer-acts.js";

interface PeerPageProps {
  readonly name: string;
  /** Undefined if this server does not know it. */
  readonly peer: Peer | undefined;
  readonly onDone: () => void;
}

export function PeerPage({ name, peer, onDone }: PeerPageProps) {
  const admin = isAdmin();
  useKeys({ Escape: () => go(href("federation")) });
  useTop(
    name,
    () => ({
      left: (
        <>
          <a class="crumb wide-only" href={href("federation")}>
            Federation /
          </a>
          <a class="crumb phone-only" href={href("federation")} aria-label="Federation">
            <Icon name="back" />
          </a>
          <h1 class="cut">
            <Text>{name}</Text>
          </h1>
          {peer !== undefined && (
            <span class={`pill ${peer.is_active === true ? "completed" : "failed"}`}>
              {peer.is_active === true ? "Active" : "Inactive"}
            </span>
          )}
        </>
      ),
      right: admin && peer !== undefined && (
        <PeerActs
          peer={peer}
          onDone={onDone}
          onRemoved={() => {
            onDone();
            go(href("federation"));
          }}
        />
      ),
    }),
    [name, admin, peer?.is_active, peer === undefined],
  );
  if (peer === undefined) {
    return (
      <div class="empty">
        <h2>Not found</h2>
        <p>
          This server knows no swarm with the name <Text>{name}</Text>.
        </p>
        <a class="button" href={href("federation")}>
          Other swarms
        </a>
      </div>
    );
  }
  return (
    <Page label={`Swarm ${name}`}>
      <div class="peer-panels">
        <About peer={peer} />
        {admin && <Health checks={peer.checks ?? []} />}
      </div>
      <Shared name={name} />
      {admin && <Outbox queue="federation" title="Mail to it" target={name} />}
    </Page>
  );
}

function About({ peer }: { readonly peer: Peer }) {
  const now = useNow(5_000);
  const facts: Fact[] = [
    ["Address", <Text key="address">{peer.base_url ?? "–"}</Text>],
    ["Purpose", <Text key="about">{peer.swarm_description || "–"}</Text>],
    ["Version", <Text key="version">{peer.version ?? "–"}</Text>],
    ["Latency", peer.latency == null ? "–" : duration(peer.latency * 1_000)],
    ["Last seen", peer.last_seen == null ? "never" : sinceThen(now - Date.parse(peer.last_seen))],
  ];
  if (isAdmin()) {
    facts.push(
      [
        "Token",
        <span key="token" class={peer.auth_state === "needs token" ? "wait" : ""}>
          {peer.auth_state ?? "–"}
        </span>,
      ],
      [
        "Key",
        <span key="key" class="mono">
          <Text>{peer.public_key ?? "–"}</Text>
        </span>,
      ],
      ["Kept", peer.volatile === true ? "until the next start" : "across restarts"],
    );
  }
  return (
    <Panel title="About">
      <div class="inside">
        <FactList rows={facts} />
        {peer.last_error != null && (
          <p class="bad last-error">
            <Text>{peer.last_error}</Text>
          </p>
        )}
      </div>
    </Panel>
  );
}

function Health({ checks }: { readonly checks: NonNullable<Peer["checks"]> }) {
  const [first] = checks;
  return (
    <Panel title="Health" note={first === undefined ? undefined : `since ${clock(first[0], false)}`}>
      <div class="inside stack">
        {first === undefined ? (
          <p class="dim">It was not checked yet.</p>
        ) : (
          <>
            <Checks checks={checks} count={60} />
            <p class="dim">{checksText(checks)}</p>
          </>
        )}
      </div>
    </Panel>
  );
}

interface SharedPage {
  readonly tasks: readonly TaskSummary[];
  readonly next_cursor?: string | null;
  readonly scanned?: number;
}

/** The newest tasks in which agents of the other swarm took part. */
function Shared({ name }: { readonly name: string }) {
  const admin = isAdmin();
  const agent = `@${name}`;
  const { value } = useRequest<SharedPage>(admin ? "admin/tasks" : "tasks", { agent, limit: 20 }, 15_000);
  if (value === undefined) return null;
  const { tasks, next_cursor, scanned = 0 } = value;
  const isPart = next_cursor != null;
  return (
    <Panel
      title="Tasks shared with it"
      note={
        isPart ? (
          <a class="link" href={href("tasks", undefined, { agent })}>
            all
          </a>
        ) : (
          `${grouped(tasks.length)} of ${plural(scanned, "task")}`
        )
      }
    >
      {tasks.length === 0 ? (
        <p class="inside dim">{isPart ? `None of the newest ${grouped(scanned)} tasks.` : "None yet."}</p>
      ) : (
        <Table label="Tasks shared with it" columns={["Status", "Task", "Owner", "Started", "Updated"]}>
          {tasks.map((task) => (
            <tr key={task.key ?? task.task_id}>
              <td>
                <StatusPill status={task.status} />
              </td>
              <td class="wide-cell">
                <a
                  class="link"
                  href={admin && task.key !== undefined ? href("all", task.key) : href("tasks", task.task_id)}
                >
                  <Text>{task.title ?? task.task_id}</Text>
                </a>
              </td>
              <td class="dim">
                <Text>{principalOf(task.task_owner)}</Text>
              </td>
              <td class="dim nowrap">{dateAndTime(Date.parse(task.start_time))}</td>
              <td class="dim nowrap">{dateAndTime(Date.parse(task.updated_time ?? task.start_time))}</td>
            </tr>
          ))}
        </Table>
      )}
    </Panel>
  );
}
