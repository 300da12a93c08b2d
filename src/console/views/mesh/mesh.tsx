/** The mesh: this server's identity, its swarms, members, invites, and who asks to join. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, isAdmin, request } from "../../data/api.js";
import { noteMesh } from "../../data/neighbors.js";
import type { MeshOverview } from "../../data/shapes.js";
import { useRequest } from "../../data/use.js";
import { visibleString } from "../../model/visible-text.js";
import { dateAndTime, grouped } from "../../model/words.js";
import { useTop } from "../../nav/title.js";
import { Command, Dialog, Panel } from "../../ui/kit.js";
import { Act, Table } from "../../ui/table.js";
import { Text } from "../../ui/text.js";
import { Outbox } from "../parts/outbox.js";
import { ForAdmins, Page, WhenLoaded } from "../parts/page.js";
import { SearchButton } from "../parts/search-button.js";

const sum = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((total, each) => total + each, 0);

export default function Mesh() {
  const mesh = useRequest<MeshOverview>(isAdmin() ? "admin/mesh" : undefined, {}, 10_000);
  useEffect(() => {
    if (mesh.value !== undefined) noteMesh(mesh.value);
  }, [mesh.value]);
  useTop("Mesh", () => ({ left: <h1>Mesh</h1>, right: <SearchButton /> }), []);
  const [made, setMade] = useState<string | undefined>(undefined);
  const operate: Operate = async (operation, body) => {
    const answer = await request<{ invite_token?: string }>(`admin/mesh/${operation}`, { body });
    if (answer.invite_token !== undefined) setMade(answer.invite_token);
    mesh.again();
  };
  if (!isAdmin()) return <ForAdmins what="The mesh is shown to admins." />;
  if (mesh.error instanceof ApiError && mesh.error.status === 404) {
    return (
      <div class="empty">
        <h2>This server has no mesh</h2>
        <p>
          A mesh connects agents of several organizations, each with a key of its own. Set it up on the
          server’s machine, then restart the server:
        </p>
        <div class="commands">
          <Command text="mailroom mesh init --agent-id NAME --endpoint https://mail.example.com/swarm" />
        </div>
      </div>
    );
  }
  return (
    <WhenLoaded from={mesh}>
      {(value) => <Overview value={value} operate={operate} made={made} onSeen={() => setMade(undefined)} />}
    </WhenLoaded>
  );
}

interface OverviewProps {
  readonly value: MeshOverview;
  readonly operate: Operate;
  /** An invite that was made just now. */
  readonly made: string | undefined;
  readonly onSeen: () => void;
}

function Overview({ value, operate, made, onSeen }: OverviewProps) {
  return (
    <Page label="Mesh">
      <Panel
        title="This agent"
        note={`${grouped(sum(value.inbox))} received, ${grouped(sum(value.outbox))} sent`}
      >
        <div class="inside">
          <dl class="facts">
            <dt>Id</dt>
            <dd>
              <b>
                <Text>{value.agent_id}</Text>
              </b>
            </dd>
            <dt>Address</dt>
            <dd class="mono">
              <Text>{value.endpoint}</Text>
            </dd>
            <dt>Key</dt>
            <dd class="mono">{value.fingerprint}</dd>
          </dl>
        </div>
      </Panel>
      {value.swarms.length === 0 && <p class="dim">This agent is in no swarm of the mesh.</p>}
      {value.swarms.map((swarm) => (
        <SwarmOfMesh key={swarm.swarm_id} swarm={swarm} me={value.agent_id} operate={operate} />
      ))}
      {made !== undefined && (
        <Dialog title="Invite" onClose={onSeen}>
          <p class="dim">
            An agent that has this invite may ask to join. Give it to one agent, through a channel that you
            trust.
          </p>
          <Command text={made} />
        </Dialog>
      )}
      <Received />
      <Outbox queue="mesh" title="Mail to other agents" />
      <Panel title="On the machine">
        <div class="inside stack">
          <p class="dim">
            Commands that change this agent’s identity, or that create, join, leave or end a swarm, run on the
            server’s machine only.
          </p>
          <Command text="mailroom mesh --help" />
        </div>
      </Panel>
    </Page>
  );
}

interface Inbox {
  readonly messages: readonly {
    readonly message_id: string;
    readonly sender_id: string;
    readonly message_type: string;
    readonly status: string;
    readonly received_at: string;
    readonly content_preview: string;
  }[];
}

/** Characters of a message that are shown; the command line shows all of it. */
const PREVIEW = 240;

/** News of a swarm is JSON: its action and the agent say it in words. */
function previewOf({ message_type, content_preview: text }: Inbox["messages"][number]): string {
  if (message_type === "system") {
    const of = (name: string) => new RegExp(`"${name}":"([^"\\\\]*)"`).exec(text)?.[1];
    const action = of("action");
    if (action !== undefined) return `${of("agent_id") ?? ""}: ${action.replaceAll("_", " ")}`;
  }
  return text.length > PREVIEW ? `${text.slice(0, PREVIEW)} …` : text;
}

/** The last messages from the mesh. Listing them does not mark them as read. */
function Received() {
  const { value } = useRequest<Inbox>("api/inbox", { status: "all", limit: 20 }, 10_000);
  if (value === undefined) return null;
  return (
    <Panel title="Mail from other agents" note="the newest 20">
      {value.messages.length === 0 ? (
        <p class="inside dim">No mail has come.</p>
      ) : (
        <Table label="Mail from other agents" columns={["From", "Kind", "Message", "State", "Received"]}>
          {value.messages.map((message) => (
            <tr key={message.message_id}>
              <td>
                <b>
                  <Text>{message.sender_id}</Text>
                </b>
              </td>
              <td class="dim">
                <Text>{message.message_type}</Text>
              </td>
              <td class="received">
                <Text>{previewOf(message)}</Text>
              </td>
              <td class={message.status === "unread" ? "wait" : "dim"}>{message.status}</td>
              <td class="dim nowrap">{dateAndTime(Date.parse(message.received_at))}</td>
            </tr>
          ))}
        </Table>
      )}
    </Panel>
  );
}

type Operate = (operation: string, body: Readonly<Record<string, unknown>>) => Promise<void>;

function SwarmOfMesh({
  swarm,
  me,
  operate,
}: {
  readonly swarm: MeshOverview["swarms"][number];
  readonly me: string;
  readonly operate: Operate;
}) {
  const id = swarm.swarm_id;
  return (
    <Panel
      title={visibleString(swarm.alias === "" ? swarm.name : swarm.alias)}
      note={
        <>
          {swarm.is_master ? "you are its master" : `master ${visibleString(swarm.master)}`}{" "}
          <Act
            name={swarm.muted ? "Unmute" : "Mute"}
            done={swarm.muted ? "Its mail is accepted again." : "Its mail is no longer accepted."}
            run={() => operate(swarm.muted ? "unmute" : "mute", { swarm: id })}
          />{" "}
          {swarm.is_master && <Act name="Invite" run={() => operate("invite", { swarm: id })} />}
        </>
      }
    >
      <Table label={`Members of ${swarm.name}`} columns={["Agent", "Role", "Key", "Address", "Since", ""]}>
        {swarm.pending.map((agent) => (
          <tr key={`ask ${agent.agent_id}`}>
            <td>
              <b>
                <Text>{agent.agent_id}</Text>
              </b>
            </td>
            <td class="wait">asks to join</td>
            <td>
              <span class="mono">{agent.fingerprint}</span>
              <br />
              <span class="dim">Does this match what they told you?</span>
            </td>
            <td class="mono">
              <Text>{agent.endpoint}</Text>
            </td>
            <td class="dim nowrap">{dateAndTime(agent.requested_at)}</td>
            <td class="right nowrap">
              <Act
                name="Approve"
                done={`${agent.agent_id} is a member.`}
                run={() => operate("approve", { swarm: id, agent: agent.agent_id })}
              />{" "}
              <Act
                name="Reject"
                danger
                done="Rejected."
                run={() => operate("reject", { swarm: id, agent: agent.agent_id })}
              />
            </td>
          </tr>
        ))}
        {swarm.members.map((agent) => (
          <tr key={agent.agent_id}>
            <td>
              <b>
                <Text>{agent.agent_id}</Text>
              </b>
            </td>
            <td class="dim">
              {agent.agent_id === swarm.master ? "master" : "member"}
              {agent.agent_id === me ? " (this)" : ""}
              {agent.sealed ? ", sealed" : ""}
            </td>
            <td class="mono">{agent.fingerprint}</td>
            <td class="mono">
              <Text>{agent.endpoint}</Text>
            </td>
            <td class="dim nowrap">{dateAndTime(agent.joined_at)}</td>
            <td class="right">
              {swarm.is_master && agent.agent_id !== me && (
                <Act
                  name="Remove"
                  danger
                  sure
                  done={`${agent.agent_id} was removed.`}
                  run={() => operate("kick", { swarm: id, agent: agent.agent_id })}
                />
              )}
            </td>
          </tr>
        ))}
        {swarm.invites.map((invite) => (
          <tr key={invite.key}>
            <td class="dim">invite</td>
            <td class="dim">
              {invite.uses} of {invite.max_uses ?? "any number"} used
            </td>
            <td class="mono" title={invite.key}>
              <Text>{`${invite.key.slice(0, 16)}…`}</Text>
            </td>
            <td class="dim">
              {invite.revoked_at !== null
                ? "revoked"
                : invite.expires_at === null
                  ? "does not expire"
                  : `until ${dateAndTime(invite.expires_at)}`}
            </td>
            <td class="dim nowrap">{dateAndTime(invite.created_at)}</td>
            <td class="right">
              {invite.revoked_at === null && (
                <Act
                  name="Revoke"
                  danger
                  sure
                  done="The invite is revoked."
                  run={() => operate("revoke", { swarm: id, invite: invite.key })}
                />
              )}
            </td>
          </tr>
        ))}
        {swarm.bans.map((ban) => (
          <tr key={`ban ${ban.agent_id}`}>
            <td>
              <Text>{ban.agent_id}</Text>
            </td>
            <td class="bad">banned</td>
            <td class="dim" colSpan={2}>
              <Text>{ban.reason ?? ""}</Text>
            </td>
            <td class="dim nowrap">{dateAndTime(ban.at)}</td>
            <td class="right">
              <Act
                name="Unban"
                done={`${ban.agent_id} may join again.`}
                run={() => operate("unban", { swarm: id, agent: ban.agent_id })}
              />
            </td>
          </tr>
        ))}
      </Table>
    </Panel>
  );
}
