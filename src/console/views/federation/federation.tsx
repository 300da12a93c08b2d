/** Other swarms, the mail on its way to them, and who asks to be known. */
import { useEffect, useState } from "preact/hooks";
import { isAdmin, request } from "../../data/api.js";
import { noteSwarms, otherSwarms } from "../../data/neighbors.js";
import type { Peer } from "../../data/shapes.js";
import { type Loaded, useRequest } from "../../data/use.js";
import { duration, grouped, sinceThen } from "../../model/words.js";
import { href } from "../../nav/route.js";
import { useTop } from "../../nav/title.js";
import { Dialog, Panel, toast, useNow } from "../../ui/kit.js";
import { Act, Table } from "../../ui/table.js";
import { Text } from "../../ui/text.js";
import { Checks } from "../parts/checks.js";
import { Outbox } from "../parts/outbox.js";
import { Page, WhenLoaded } from "../parts/page.js";
import { PeerState } from "../parts/peer-state.js";
import { SearchButton } from "../parts/search-button.js";
import { PeerPage } from "./peer.js";
import { PeerActs } from "./peer-acts.js";

interface Proposal {
  readonly name?: string;
  readonly swarm_name?: string;
  readonly base_url?: string;
}

export default function Federation({ id }: { readonly id?: string | undefined }) {
  const peers = useRequest<{ swarms: Peer[] }>("swarms", {}, 5_000);
  useEffect(() => {
    if (peers.value !== undefined) noteSwarms(peers.value.swarms);
  }, [peers.value]);
  if (id === undefined) return <List peers={peers} />;
  return (
    <WhenLoaded from={peers}>
      {({ swarms }) => (
        <PeerPage
          name={id}
          peer={otherSwarms(swarms).find(({ swarm_name }) => swarm_name === id)}
          onDone={peers.again}
        />
      )}
    </WhenLoaded>
  );
}

function List({ peers }: { readonly peers: Loaded<{ swarms: Peer[] }> }) {
  const admin = isAdmin();
  const [adding, setAdding] = useState(false);
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
  return (
    <WhenLoaded from={peers}>
      {({ swarms }) => (
        <Page label="Federation">
          <Peers peers={otherSwarms(swarms)} admin={admin} onDone={peers.again} />
          {admin && <Proposals onDone={peers.again} />}
          {admin && <Outbox queue="federation" title="Mail to other servers" />}
          {adding && <AddSwarm onClose={() => setAdding(false)} onDone={peers.again} />}
        </Page>
      )}
    </WhenLoaded>
  );
}

interface PeersProps {
  readonly peers: readonly Peer[];
  readonly admin: boolean;
  readonly onDone: () => void;
}

function Peers({ peers, admin, onDone }: PeersProps) {
  const now = useNow(5_000);
  if (peers.length === 0) {
    return (
      <Panel title="Other swarms">
        <p class="inside dim">
          This server knows no other swarm. {admin && "Add one, and agents can write to name@swarm."}
        </p>
      </Panel>
    );
  }
  return (
    <Panel title="Other swarms" note={`${grouped(peers.length)} known`}>
      <Table
        label="Other swarms"
        columns={[
          "Swarm",
          "Address",
          "State",
          "Latency>",
          ...(admin ? ["Health", "Token", "Key", "Waiting>"] : []),
          "Last report",
          ...(admin ? [""] : []),
        ]}
      >
        {peers.map((peer) => (
          <tr key={peer.swarm_name}>
            <td>
              <a class="link" href={href("federation", peer.swarm_name)}>
                <b>
                  <Text>{peer.swarm_name}</Text>
                </b>
              </a>
            </td>
            <td class="mono">
              <Text>{peer.base_url ?? ""}</Text>
            </td>
            <PeerState peer={peer} />
            <td class="right nowrap">{peer.latency == null ? "–" : duration(peer.latency * 1_000)}</td>
            {admin && (
              <>
                <td>
                  <Checks checks={peer.checks ?? []} count={30} />
                </td>
                <td class={peer.auth_state === "needs token" ? "wait" : ""}>{peer.auth_state ?? "–"}</td>
                <td class="mono nowrap">
                  <Text>{peer.public_key ?? "–"}</Text>
                </td>
                <td class={`right ${(peer.waiting ?? 0) > 0 ? "wait" : "dim"}`}>
                  {grouped(peer.waiting ?? 0)}
                </td>
              </>
            )}
            <td class="dim">
              <Text>
                {peer.last_error ??
                  (peer.last_seen == null
                    ? "never seen"
                    : `seen ${sinceThen(now - Date.parse(peer.last_seen))}`)}
              </Text>
            </td>
            {admin && (
              <td class="right nowrap">
                <PeerActs peer={peer} onDone={onDone} />
              </td>
            )}
          </tr>
        ))}
      </Table>
    </Panel>
  );
}

function Proposals({ onDone }: { readonly onDone: () => void }) {
  const { value, again } = useRequest<{ proposals?: Proposal[] }>("swarms/proposals", {}, 15_000);
  const proposals = value?.proposals ?? [];
  if (proposals.length === 0) return null;
  const after = () => {
    again();
    onDone();
  };
  return (
    <Panel title="Found, not yet trusted" note="accept only servers that you know">
      <Table label="Found, not yet trusted">
        {proposals.map((proposal) => {
          const name = proposal.name ?? proposal.swarm_name ?? "";
          const path = `swarms/proposals/${encodeURIComponent(name)}`;
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
              <td class="right nowrap">
                <Act
                  name="Accept"
                  done={`${name} is known now.`}
                  run={() => request(`${path}/accept`, { method: "POST" })}
                  after={after}
                />{" "}
                <Act
                  name="Reject"
                  danger
                  done="Rejected."
                  run={() => request(path, { method: "DELETE" })}
                  after={after}
                />
              </td>
            </tr>
          );
        })}
      </Table>
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
