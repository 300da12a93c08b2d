/** Other swarms, the mail on its way to them, and who asks to be known. */
import { useEffect, useState } from "preact/hooks";
import { isAdmin, readOnly, request } from "../../data/api.js";
import { setAttention } from "../../data/attention.js";
import { hello } from "../../data/feed.js";
import type { OutboxItem, OutboxPage, Peer } from "../../data/shapes.js";
import { useRequest } from "../../data/use.js";
import { ago, dateAndTime, duration, grouped, plural, sinceThen } from "../../model/words.js";
import { href } from "../../nav/route.js";
import { useTop } from "../../nav/title.js";
import { Dialog, Panel, Tabs, toast, useNow } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";
import { SearchButton } from "../parts/search-button.js";
import { ErrorState, Waiting } from "../parts/states.js";

type Status = OutboxItem["status"];

interface Proposal {
  readonly name?: string;
  readonly swarm_name?: string;
  readonly base_url?: string;
}

async function doing(what: Promise<unknown>, done: string, after: () => void): Promise<void> {
  try {
    await what;
    toast(done, "good");
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), "bad");
  }
  after();
}

export default function Federation() {
  const admin = isAdmin();
  const peers = useRequest<{ swarms: Peer[] }>("swarms", {}, 5_000);
  const proposals = useRequest<{ proposals?: Proposal[] }>(
    admin ? "swarms/proposals" : undefined,
    {},
    15_000,
  );
  const [adding, setAdding] = useState(false);
  const others = (peers.value?.swarms ?? []).filter(
    ({ base_url, swarm_name }) => base_url !== null && swarm_name !== hello.value?.swarm,
  );
  const wrong = others.filter(({ is_active }) => is_active === false).length;
  useEffect(
    () => setAttention("federation", wrong + (proposals.value?.proposals?.length ?? 0)),
    [wrong, proposals.value],
  );
  useTop(
    "Federation",
    () => ({
      left: <h1>Federation</h1>,
      right: (
        <>
          <SearchButton />
          {admin && (
            <button type="button" class="button main" onClick={() => setAdding(true)}>
              Add a swarm
            </button>
          )}
        </>
      ),
    }),
    [admin],
  );
  if (peers.error !== undefined && peers.value === undefined)
    return <ErrorState error={peers.error} onRetry={peers.again} />;
  if (peers.value === undefined) return <Waiting />;
  return (
    <div class="page-body scroll stack" tabIndex={0} role="region" aria-label="Federation">
      <Panel title="Other swarms" note={`${others.length} known`}>
        {others.length === 0 ? (
          <div class="empty small">
            <p>
              This server knows no other swarm. {admin ? "Add one, and agents can write to name@swarm." : ""}
            </p>
          </div>
        ) : (
          <div class="table-scroll scroll" tabIndex={0} role="region" aria-label="Other swarms">
            <table class="grid">
              <thead>
                <tr>
                  <th>Swarm</th>
                  <th>Address</th>
                  <th>State</th>
                  <th class="right">Latency</th>
                  <th>Token</th>
                  <th>Key</th>
                  <th class="right">Waiting</th>
                  <th>Last report</th>
                  <th />
                </tr>
              </thead>
              <tbody>
                {others.map((peer) => (
                  <PeerRow key={peer.swarm_name} peer={peer} admin={admin} onDone={peers.again} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Panel>
      {(proposals.value?.proposals?.length ?? 0) > 0 && (
        <Panel title="Asking to register" note="accept only servers that you know">
          <table class="grid">
            <tbody>
              {proposals.value?.proposals?.map((proposal) => {
                const name = proposal.name ?? proposal.swarm_name ?? "";
                return (
                  <tr key={name}>
                    <td>
                      <b>
                        <Text>{name}</Text>
                      </b>
                    </td>
                    <td class="mono">
                      <Text>{proposal.base_url ?? ""}</Text>
                    </td>
                    <td class="right">
                      <button
                        type="button"
                        class="button small"
                        onClick={() =>
                          void doing(
                            request(`swarms/proposals/${encodeURIComponent(name)}/accept`, {
                              method: "POST",
                            }),
                            "Accepted.",
                            proposals.again,
                          )
                        }
                      >
                        Accept
                      </button>{" "}
                      <button
                        type="button"
                        class="button small danger"
                        onClick={() =>
                          void doing(
                            request(`swarms/proposals/${encodeURIComponent(name)}`, { method: "DELETE" }),
                            "Rejected.",
                            proposals.again,
                          )
                        }
                      >
                        Reject
                      </button>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </Panel>
      )}
      {admin && <Outbox queue="federation" />}
      {adding && <AddSwarm onClose={() => setAdding(false)} onDone={peers.again} />}
    </div>
  );
}

function PeerRow({
  peer,
  admin,
  onDone,
}: {
  readonly peer: Peer;
  readonly admin: boolean;
  readonly onDone: () => void;
}) {
  const now = useNow(5_000);
  const [sure, setSure] = useState(false);
  const path = `swarms/${encodeURIComponent(peer.swarm_name)}`;
  const seen = peer.last_seen == null ? "never seen" : `seen ${sinceThen(now - Date.parse(peer.last_seen))}`;
  return (
    <tr>
      <td>
        <b>
          <Text>{peer.swarm_name}</Text>
        </b>
      </td>
      <td class="mono">
        <Text>{peer.base_url ?? ""}</Text>
      </td>
      <td class={`nowrap ${peer.is_active === true ? "good" : "bad"}`}>
        {peer.is_active === true ? "active" : "✗ inactive"}
        {(peer.failures ?? 0) > 0 ? `, ${plural(peer.failures ?? 0, "failure")}` : ""}
      </td>
      <td class="right">{peer.latency == null ? "–" : duration(peer.latency * 1_000)}</td>
      <td>{peer.auth_state ?? "–"}</td>
      <td class="mono">{peer.public_key == null ? "–" : <Text>{peer.public_key.slice(0, 19)}</Text>}</td>
      <td class={`right ${(peer.waiting ?? 0) > 0 ? "wait" : "dim"}`}>{peer.waiting ?? 0}</td>
      <td class="dim">
        <Text>{peer.last_error ?? seen}</Text>
      </td>
      <td class="right nowrap">
        {admin && (
          <>
            <button
              type="button"
              class="button small"
              disabled={readOnly.value !== undefined}
              onClick={() =>
                void doing(
                  request(`${path}/ping`, { method: "POST" }),
                  `${peer.swarm_name} answered.`,
                  onDone,
                )
              }
            >
              Ping
            </button>{" "}
            <button
              type="button"
              class="button small danger"
              disabled={readOnly.value !== undefined}
              onClick={() => {
                if (sure) void doing(request(path, { method: "DELETE" }), "Removed.", onDone);
                else setSure(true);
              }}
            >
              {sure ? "Really remove" : "Remove"}
            </button>
          </>
        )}
      </td>
    </tr>
  );
}

export function Outbox({ queue }: { readonly queue: string }) {
  const [status, setStatus] = useState<Status>("waiting");
  const page = useRequest<OutboxPage>("admin/outbox", { queue, status, limit: 100 }, 4_000);
  const now = useNow();
  if (page.error !== undefined) return null;
  const counts = page.value?.counts;
  const tabs = (["waiting", "delivered", "refused", "expired"] as const).map((id) => ({
    id,
    name: { waiting: "Waiting", delivered: "Delivered", refused: "Refused", expired: "Abandoned" }[id],
    count: counts === undefined ? undefined : grouped(counts[id]),
  }));
  return (
    <Panel
      title="Mail to other servers"
      note={<Tabs label="Outbox" value={status} tabs={tabs} onPick={setStatus} />}
    >
      {(page.value?.items.length ?? 0) === 0 ? (
        <p class="inside dim">{status === "waiting" ? "No mail waits." : "None."}</p>
      ) : (
        <div class="table-scroll scroll" tabIndex={0} role="region" aria-label="Mail to other servers">
          <table class="grid">
            <thead>
              <tr>
                <th>To</th>
                <th>Subject</th>
                <th>Task</th>
                <th class="right">Tries</th>
                <th>{status === "waiting" ? "Next try" : "Ended"}</th>
                <th>Until</th>
                <th>Reason</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {page.value?.items.map((item) => (
                <tr key={item.id}>
                  <td>
                    <Text>{item.to ?? item.target}</Text>
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
                      ? item.due_at <= now
                        ? "now"
                        : `in ${ago(item.due_at - now)}`
                      : item.finished_at === null
                        ? ""
                        : sinceThen(now - item.finished_at)}
                  </td>
                  <td class="dim nowrap">
                    {item.deadline_at === null ? "–" : dateAndTime(item.deadline_at)}
                  </td>
                  <td class={item.status === "delivered" ? "dim" : "wait"}>
                    <Text>{item.reason ?? ""}</Text>
                  </td>
                  <td class="right nowrap">
                    {item.status === "waiting" && (
                      <>
                        <button
                          type="button"
                          class="button small"
                          onClick={() =>
                            void doing(
                              request(`admin/outbox/${encodeURIComponent(item.id)}/retry`, {
                                method: "POST",
                              }),
                              "Trying now.",
                              page.again,
                            )
                          }
                        >
                          Try now
                        </button>{" "}
                        <button
                          type="button"
                          class="button small danger"
                          onClick={() =>
                            void doing(
                              request(`admin/outbox/${encodeURIComponent(item.id)}/abandon`, {
                                method: "POST",
                              }),
                              "Abandoned. The sender is notified.",
                              page.again,
                            )
                          }
                        >
                          Give up
                        </button>
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function AddSwarm({ onClose, onDone }: { readonly onClose: () => void; readonly onDone: () => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [problem, setProblem] = useState("");
  const add = async () => {
    try {
      await request("swarms", { body: { name, base_url: url } });
      onDone();
      onClose();
      toast(`${name} is known now.`, "good");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Dialog title="Add a swarm" onClose={onClose}>
      <label class="labelled">
        <span>Name</span>
        <input
          class="field"
          data-first
          value={name}
          onInput={(event) => setName(event.currentTarget.value.trim())}
        />
      </label>
      <label class="labelled">
        <span>Address</span>
        <input
          class="field mono"
          placeholder="https://vendor.example"
          value={url}
          onInput={(event) => setUrl(event.currentTarget.value.trim())}
        />
      </label>
      {problem !== "" && (
        <div class="notice bad" role="alert">
          <Text>{problem}</Text>
        </div>
      )}
      <p class="dim">
        Its token stays on the server’s machine: set it in the environment, as the documentation of federation
        says.
      </p>
      <footer>
        <span class="grow" />
        <button
          type="button"
          class="button main"
          disabled={name === "" || url === ""}
          onClick={() => void add()}
        >
          Add
        </button>
      </footer>
    </Dialog>
  );
}
