/** The mesh: this server's identity, its swarms, members, invites, and who asks to join. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, isAdmin, readOnly, request } from "../../data/api.js";
import { setAttention } from "../../data/attention.js";
import { useRequest } from "../../data/use.js";
import { dateAndTime, grouped } from "../../model/words.js";
import { useTop } from "../../nav/title.js";
import { Command, Dialog, Panel, toast } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";
import { Outbox } from "../federation/federation.js";
import { SearchButton } from "../parts/search-button.js";
import { ErrorState, Waiting } from "../parts/states.js";

interface MeshAgent {
  readonly agent_id: string;
  readonly endpoint: string;
  readonly fingerprint: string;
}

interface MeshSwarm {
  readonly swarm_id: string;
  readonly name: string;
  readonly alias: string;
  readonly master: string;
  readonly is_master: boolean;
  readonly joined_at: number;
  readonly muted: boolean;
  readonly settings: { readonly allow_member_invite: boolean; readonly require_approval: boolean };
  readonly members: readonly (MeshAgent & { readonly joined_at: number; readonly sealed: boolean })[];
  readonly pending: readonly (MeshAgent & { readonly requested_at: number })[];
  readonly invites: readonly {
    readonly key: string;
    readonly uses: number;
    readonly max_uses: number | null;
    readonly created_at: number;
    readonly expires_at: number | null;
    readonly revoked_at: number | null;
  }[];
  readonly bans: readonly {
    readonly agent_id: string;
    readonly at: number;
    readonly reason: string | null;
  }[];
}

interface MeshOverview extends MeshAgent {
  readonly muted_agents: readonly string[];
  readonly muted_swarms: readonly string[];
  readonly inbox: Readonly<Record<string, number>>;
  readonly outbox: Readonly<Record<string, number>>;
  readonly swarms: readonly MeshSwarm[];
}

const sum = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((total, each) => total + each, 0);

export default function Mesh() {
  const mesh = useRequest<MeshOverview>(isAdmin() ? "admin/mesh" : undefined, {}, 10_000);
  const asking = (mesh.value?.swarms ?? []).reduce((total, { pending }) => total + pending.length, 0);
  useEffect(() => setAttention("mesh", asking), [asking]);
  useTop("Mesh", () => ({ left: <h1>Mesh</h1>, right: <SearchButton /> }), []);
  const [made, setMade] = useState<string | undefined>(undefined);
  const operate: Operate = async (operation, body, done) => {
    try {
      const answer = await request<{ invite_token?: string }>(`admin/mesh/${operation}`, { body });
      if (answer.invite_token === undefined) toast(done, "good");
      else setMade(answer.invite_token);
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
    mesh.again();
  };
  if (!isAdmin()) {
    return (
      <div class="empty">
        <h2>For admins</h2>
        <p>The mesh is shown to admins.</p>
      </div>
    );
  }
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
  if (mesh.error !== undefined && mesh.value === undefined)
    return <ErrorState error={mesh.error} onRetry={mesh.again} />;
  if (mesh.value === undefined) return <Waiting />;
  const { value } = mesh;
  return (
    <div class="page-body scroll stack" tabIndex={0} role="region" aria-label="Mesh">
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
        <Dialog title="Invite" onClose={() => setMade(undefined)}>
          <p class="dim">
            An agent that has this invite may ask to join. Give it to one agent, through a channel that you
            trust.
          </p>
          <Command text={made} />
        </Dialog>
      )}
      <Outbox queue="mesh" />
      <Panel title="On the machine">
        <div class="inside stack">
          <p class="dim">
            Commands that change this agent’s identity, or that create, join, leave or end a swarm, run on the
            server’s machine only.
          </p>
          <Command text="mailroom mesh --help" />
        </div>
      </Panel>
    </div>
  );
}

type Operate = (operation: string, body: Readonly<Record<string, unknown>>, done: string) => Promise<void>;

function Act({
  name,
  danger = false,
  sure = false,
  run,
}: {
  readonly name: string;
  readonly danger?: boolean;
  readonly sure?: boolean;
  readonly run: () => Promise<void>;
}) {
  const [asked, setAsked] = useState(false);
  return (
    <button
      type="button"
      class={`button small ${danger ? "danger" : ""}`}
      disabled={readOnly.value !== undefined}
      onClick={() => {
        if (sure && !asked) setAsked(true);
        else void run().then(() => setAsked(false));
      }}
    >
      {asked ? `Really ${name.toLowerCase()}` : name}
    </button>
  );
}

function SwarmOfMesh({
  swarm,
  me,
  operate,
}: {
  readonly swarm: MeshSwarm;
  readonly me: string;
  readonly operate: Operate;
}) {
  const id = swarm.swarm_id;
  return (
    <Panel
      title={swarm.alias === "" ? swarm.name : swarm.alias}
      note={
        <>
          {swarm.is_master ? "you are its master" : `master ${swarm.master}`}{" "}
          <Act
            name={swarm.muted ? "Unmute" : "Mute"}
            run={() => operate(swarm.muted ? "unmute" : "mute", { swarm: id }, "Done.")}
          />{" "}
          {swarm.is_master && (
            <Act name="Invite" run={() => operate("invite", { swarm: id }, "An invite was made.")} />
          )}
        </>
      }
    >
      <div class="table-scroll scroll" tabIndex={0} role="region" aria-label={`Members of ${swarm.name}`}>
        <table class="grid">
          <thead>
            <tr>
              <th>Agent</th>
              <th>Role</th>
              <th>Key</th>
              <th>Address</th>
              <th>Since</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {swarm.pending.map((agent) => (
              <tr key={`ask ${agent.agent_id}`}>
                <td>
                  <b>
                    <Text>{agent.agent_id}</Text>
                  </b>
                </td>
                <td class="wait">asks to join</td>
                <td class="mono">
                  {agent.fingerprint}
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
                    run={() =>
                      operate(
                        "approve",
                        { swarm: id, agent: agent.agent_id },
                        `${agent.agent_id} is a member.`,
                      )
                    }
                  />{" "}
                  <Act
                    name="Reject"
                    danger
                    run={() => operate("reject", { swarm: id, agent: agent.agent_id }, "Rejected.")}
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
                      run={() =>
                        operate(
                          "kick",
                          { swarm: id, agent: agent.agent_id },
                          `${agent.agent_id} was removed.`,
                        )
                      }
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
                <td class="mono">
                  <Text>{invite.key}</Text>
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
                      run={() => operate("revoke", { swarm: id, invite: invite.key }, "Revoked.")}
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
                    run={() => operate("unban", { swarm: id, agent: ban.agent_id }, "Unbanned.")}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
