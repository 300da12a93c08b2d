/** ASP: Membership State Schema. Reads and writes `state.json`, which other software also reads and writes. */
import { z } from "zod";
import { isUuid, MailroomError } from "../../base/index.js";
import { checkAgentId } from "../identity/agent-id.js";
import { parsePublicKey } from "../identity/keys.js";
import type { MembershipView } from "../membership/types.js";
import { toOneLine, tooLong } from "../message/check.js";
import { checkEndpoint } from "../message/endpoint.js";
import { LIMITS } from "../message/types.js";
import { formatTime, parseTime } from "../time.js";

const SCHEMA_VERSION = "1.0.0";
/** 2.0.0 is what the reference exports: the same, plus its inbox and outbox. */
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
/** A UUID of any version, as the protocol requires. */
const SwarmId = z
  .string()
  .refine(isUuid, "must be a UUID")
  .transform((id) => id.toLowerCase());
const Name = z
  .string()
  .min(1)
  .transform(toOneLine)
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
    .min(1)
    .max(LIMITS.members),
  joined_at: Time,
  settings: z.object({
    allow_member_invite: z.boolean().default(false),
    require_approval: z.boolean().default(false),
  }),
});

const Text = z.string().nullish();
/** Ids of other software. Stored keys separate ids by slashes. */
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
    AgentId,
    z.object({ public_key: Key, fetched_at: Time, endpoint: z.string().nullish() }),
  ),
  exported_at: z.string().optional(),
  inbox: z.array(Message).optional(),
  message_queue: z.array(Message).optional(),
});
export type StateDocument = z.output<typeof State>;

/** @throws MailroomError naming what is invalid */
export function readStateDocument(text: string, now: number): StateDocument {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new MailroomError("invalid_state_file", "the state file is not valid JSON", { cause });
  }
  const version = z.object({ schema_version: z.string() }).safeParse(value);
  if (version.success && !READABLE.includes(version.data.schema_version)) {
    throw new MailroomError(
      "invalid_state_file",
      `schema_version ${version.data.schema_version} is not supported (supported: ${READABLE.join(", ")})`,
    );
  }
  const parsed = State.safeParse(value);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new MailroomError(
      "invalid_state_file",
      `the state file is invalid: ${issues.slice(0, 10).join("; ")}`,
      {
        details: { issues },
      },
    );
  }
  const wrong = contradictionIn(parsed.data, now);
  if (wrong !== undefined) throw new MailroomError("invalid_state_file", wrong);
  return parsed.data;
}

/** A clock may be ahead, but not by more than this. */
const DAY = 86_400_000;

/** What no single field shows. */
function contradictionIn({ agent_id, swarms }: StateDocument, now: number): string | undefined {
  const seen = new Set<string>();
  for (const [key, { swarm_id, master, members, joined_at }] of Object.entries(swarms)) {
    if (key.toLowerCase() !== swarm_id) return `the swarm at key ${key} has the swarm_id ${swarm_id}`;
    if (seen.has(swarm_id)) return `the swarm ${swarm_id} occurs twice`;
    seen.add(swarm_id);
    const ids = members.map((member) => member.agent_id);
    if (new Set(ids).size < ids.length) return `swarm ${swarm_id} lists an agent twice`;
    if (!ids.includes(master)) return `the master of swarm ${swarm_id} is not in its member list`;
    if (!ids.includes(agent_id)) return `swarm ${swarm_id} does not list ${agent_id}, whose state this is`;
    const late = [joined_at, ...members.map((member) => member.joined_at)].find((at) => at > now + DAY);
    if (late !== undefined) return `swarm ${swarm_id} has a joined_at in the future: ${formatTime(late)}`;
  }
  return undefined;
}

export interface StateToWrite {
  readonly agentId: string;
  readonly view: MembershipView;
  /** Set for an export, absent for the state file. */
  readonly exportedAt?: number;
}

export function writeStateDocument({
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
