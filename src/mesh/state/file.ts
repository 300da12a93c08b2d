/** ASP: Membership State Schema. `state.json`, written for others to read and read from others. */
import { z } from "zod";
import { MeshError } from "../errors.js";
import { checkAgentId } from "../identity/agent-id.js";
import { parsePublicKey } from "../identity/keys.js";
import type { MeshView } from "../membership/types.js";
import { isUuid, tooLong } from "../message/check.js";
import { checkEndpoint } from "../message/endpoint.js";
import { LIMITS } from "../message/types.js";
import { formatTime, parseTime } from "../time.js";

export const SCHEMA_VERSION = "1.0.0";
/** 2.0.0 is what the reference exports: the same, with its inbox and outbox beside it. */
const READABLE = ["1.0.0", "2.0.0"];

const AgentId = z.string().superRefine((id, context) => {
  const wrong = checkAgentId(id);
  if (wrong !== undefined) context.addIssue({ code: "custom", message: wrong });
});
const Endpoint = z.string().superRefine((url, context) => {
  const wrong = checkEndpoint(url);
  if (wrong !== undefined) context.addIssue({ code: "custom", message: wrong });
});
const Key = z.string().transform((text, context) => {
  const parsed = parsePublicKey(text);
  if ("key" in parsed) return parsed.key.text;
  context.addIssue({ code: "custom", message: parsed.reason });
  return z.NEVER;
});
const Time = z.string().transform((text, context) => {
  const ms = parseTime(text);
  if (ms !== undefined) return ms;
  context.addIssue({ code: "custom", message: "must be an ISO 8601 time" });
  return z.NEVER;
});
/** Of any version: the protocol asks for the form alone. */
const SwarmId = z
  .string()
  .refine(isUuid, "must be a UUID")
  .transform((id) => id.toLowerCase());
const Name = z
  .string()
  .min(1)
  .refine(
    (name) => !tooLong(name, LIMITS.nameCharacters),
    `must not be longer than ${LIMITS.nameCharacters} characters`,
  );

const Swarm = z.object({
  swarm_id: SwarmId,
  name: Name,
  master: AgentId,
  members: z
    .array(z.object({ agent_id: AgentId, endpoint: Endpoint, public_key: Key, joined_at: Time }))
    .min(1),
  joined_at: Time,
  settings: z.object({
    allow_member_invite: z.boolean().default(false),
    require_approval: z.boolean().default(false),
  }),
});

const Text = z.string().nullish();
/** Ids that other software gave; ours tell them apart by slashes. */
const WithoutSlash = z.string().regex(/^[^/]+$/u, "must not be empty or contain a slash");
const Message = z.object({
  message_id: WithoutSlash,
  swarm_id: WithoutSlash,
  sender_id: z.string(),
  recipient_id: Text,
  message_type: z.string().optional(),
  type: z.string().optional(),
  content: z.string(),
  received_at: Time,
  status: z.string(),
  read_at: Text,
});

const State = z.object({
  schema_version: z.string(),
  agent_id: AgentId,
  swarms: z.record(z.string(), Swarm),
  muted_swarms: z.array(SwarmId),
  muted_agents: z.array(AgentId),
  public_keys: z.record(
    z.string(),
    z.object({ public_key: Key, fetched_at: Time, endpoint: z.string().nullish() }),
  ),
  exported_at: z.string().optional(),
  inbox: z.array(Message).optional(),
  message_queue: z.array(Message).optional(),
});
export type StateFile = z.output<typeof State>;

/** @throws MeshError naming what is wrong; nothing was changed by then. */
export function readStateFile(text: string): StateFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new MeshError("invalid_state_file", "the state file is not JSON", { cause });
  }
  const version = z.object({ schema_version: z.string() }).safeParse(value);
  if (version.success && !READABLE.includes(version.data.schema_version)) {
    throw new MeshError(
      "invalid_state_file",
      `schema_version ${version.data.schema_version} is not known here: ${READABLE.join(" and ")} are`,
    );
  }
  const parsed = State.safeParse(value);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new MeshError(
      "invalid_state_file",
      `the state file is not valid: ${issues.slice(0, 10).join("; ")}`,
      {
        details: { issues },
      },
    );
  }
  for (const [id, { swarm_id, master, members }] of Object.entries(parsed.data.swarms)) {
    if (id.toLowerCase() !== swarm_id) {
      throw new MeshError("invalid_state_file", `the swarm under ${id} calls itself ${swarm_id}`);
    }
    if (!members.some(({ agent_id }) => agent_id === master)) {
      throw new MeshError("invalid_state_file", `the master of swarm ${id} is not among its members`);
    }
  }
  return parsed.data;
}

export interface StateToWrite {
  readonly agentId: string;
  readonly view: MeshView;
  /** Given for an export, absent for the file that is kept. */
  readonly exportedAt?: number;
}

export function writeStateFile({
  agentId,
  view,
  exportedAt,
}: StateToWrite): Readonly<Record<string, unknown>> {
  const swarms = [...view.swarms.values()].map((swarm) => [
    swarm.id,
    {
      swarm_id: swarm.id,
      name: swarm.name,
      master: swarm.master,
      members: [...swarm.members.values()].map(({ agentId: agent_id, endpoint, publicKey, joinedAt }) => ({
        agent_id,
        endpoint,
        public_key: publicKey,
        joined_at: formatTime(joinedAt),
      })),
      joined_at: formatTime(swarm.joinedAt),
      settings: {
        allow_member_invite: swarm.settings.allowMemberInvite,
        require_approval: swarm.settings.requireApproval,
      },
    },
  ]);
  const keys = [...view.keys.values()].map(({ agentId: agent_id, publicKey, fetchedAt, endpoint }) => [
    agent_id,
    {
      public_key: publicKey,
      fetched_at: formatTime(fetchedAt),
      ...(endpoint !== undefined && { endpoint }),
    },
  ]);
  return {
    schema_version: SCHEMA_VERSION,
    agent_id: agentId,
    ...(exportedAt !== undefined && { exported_at: formatTime(exportedAt) }),
    swarms: Object.fromEntries(swarms),
    muted_swarms: [...view.mutedSwarms.keys()],
    muted_agents: [...view.mutedAgents.keys()],
    public_keys: Object.fromEntries(keys),
  };
}
