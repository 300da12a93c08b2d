/**
 * A peer that behaves as the protocol's reference implementation was observed to, including its defects. It shares no
 * code with Mailroom: signing and verification are written here again. Later versions verify messages, and announce
 * new members with their keys.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import type { Call } from "./harness.js";

interface Answer {
  readonly status: number;
  readonly body: string;
}

type Fetch = (call: Omit<Call, "from">) => Promise<Answer>;

interface Member {
  readonly agent_id: string;
  readonly endpoint: string;
  readonly public_key: string;
}

interface Known {
  readonly name: string;
  readonly master: string;
  readonly members: Map<string, Member>;
}

export interface Stored {
  readonly message_id: string;
  readonly sender_id: string;
  readonly type: string;
  readonly content: string;
}

const REQUIRED = [
  "protocol_version",
  "message_id",
  "timestamp",
  "recipient",
  "swarm_id",
  "type",
  "content",
  "signature",
];
const PRIORITIES = ["low", "normal", "high"];

export class ReferencePeer {
  readonly swarms = new Map<string, Known>();
  readonly inbox: Stored[] = [];
  readonly #key: KeyObject;
  readonly #fetch: Fetch;
  readonly #now: () => number;
  readonly agentId: string;
  readonly #later: boolean;

  constructor(agentId: string, now: () => number, fetch: Fetch, { later = false } = {}) {
    this.agentId = agentId;
    this.#later = later;
    this.#now = now;
    this.#fetch = fetch;
    const seed = createHash("sha256").update(agentId).digest();
    const prefix = Buffer.from("302e020100300506032b657004220420", "hex");
    this.#key = createPrivateKey({ key: Buffer.concat([prefix, seed]), format: "der", type: "pkcs8" });
  }

  get endpoint(): string {
    return `https://${this.agentId}.example.com/swarm`;
  }

  get publicKey(): string {
    return createPublicKey(this.#key).export({ format: "der", type: "spki" }).subarray(12).toString("base64");
  }

  // --- its server ---------------------------------------------------------------------------------------------------

  async serve({ url, method, body, headers }: Call): Promise<Answer> {
    const path = new URL(url).pathname;
    if (method === "GET" && path === "/swarm/info") {
      return json(200, {
        agent_id: this.agentId,
        endpoint: this.endpoint,
        public_key: this.publicKey,
        protocol_version: "0.1.0",
        capabilities: ["message", "system", "notification"],
        metadata: { name: `${this.agentId} reference` },
      });
    }
    if (method === "POST" && path === "/swarm/message") {
      const message = JSON.parse(body);
      return (this.#later ? this.#refusal(message, headers) : undefined) ?? this.#takeMessage(message);
    }
    if (method === "POST" && path === "/swarm/join") return this.#takeJoin(JSON.parse(body));
    return json(404, { detail: "Not Found" });
  }

  /** Checks of later versions; the headers and the registered endpoint must match exactly. */
  #refusal(
    message: Readonly<Record<string, string>> & { readonly sender: Readonly<Record<string, string>> },
    headers: Readonly<Record<string, string>>,
  ): Answer | undefined {
    const { sender, recipient = "", swarm_id = "", protocol_version } = message;
    if (headers["x-agent-id"] !== sender.agent_id || headers["x-swarm-protocol"] !== protocol_version)
      return refusal(403, "NOT_AUTHORIZED");
    if (![this.agentId, "broadcast"].includes(recipient)) return refusal(403, "NOT_AUTHORIZED");
    const swarm = this.swarms.get(swarm_id);
    if (swarm === undefined) return refusal(404, "SWARM_NOT_FOUND");
    const member = swarm.members.get(sender.agent_id ?? "");
    if (member === undefined || member.endpoint !== sender.endpoint) return refusal(403, "NOT_AUTHORIZED");
    return signedBy(member.public_key, message) ? undefined : refusal(401, "INVALID_SIGNATURE");
  }

  /** Checks the shape only. */
  async #takeMessage(message: Readonly<Record<string, unknown>>): Promise<Answer> {
    const missing = REQUIRED.find((field) => typeof message[field] !== "string");
    if (missing !== undefined) return unprocessable(missing, "Field required");
    if ("priority" in message && !PRIORITIES.some((known) => known === message.priority)) {
      return unprocessable("priority", "Input should be 'low', 'normal' or 'high'");
    }
    const { metadata = null, sender } = message;
    if (metadata !== null && (typeof metadata !== "object" || Array.isArray(metadata))) {
      return unprocessable("metadata", "Input should be a valid dictionary");
    }
    if (!isRecord(sender) || !String(sender.endpoint).startsWith("https://")) {
      return unprocessable("sender", "Value error");
    }
    const stored: Stored = {
      message_id: String(message.message_id),
      sender_id: String(sender.agent_id),
      type: String(message.type),
      content: String(message.content),
    };
    if (!this.inbox.some(({ message_id }) => message_id === stored.message_id)) this.inbox.push(stored);
    if (stored.type === "system") await this.#dispatch(String(message.swarm_id), stored.content, sender);
    return json(200, { status: "queued", message_id: stored.message_id });
  }

  /** Trusts every announcement; if the new member's info is unavailable, no member is added. */
  async #dispatch(
    swarmId: string,
    content: string,
    sender: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const members = this.swarms.get(swarmId)?.members;
    const { action, agent_id, endpoint = sender.endpoint } = parse(content);
    if (members === undefined || typeof agent_id !== "string") return;
    if (action === "member_left" || action === "member_kicked") members.delete(agent_id);
    if (action !== "member_joined" || members.has(agent_id)) return;
    const info = await this.#fetch({ method: "GET", url: `${String(endpoint)}/info`, body: "", headers: {} });
    const { public_key, agent_id: named } = parse(info.body);
    if (info.status === 200 && named === agent_id && typeof public_key === "string") {
      members.set(agent_id, { agent_id, endpoint: String(endpoint), public_key });
    }
  }

  async #takeJoin({ invite_token, sender }: Readonly<Record<string, unknown>>): Promise<Answer> {
    const [header = "", payload = "", signature = ""] = String(invite_token).split(".");
    const claims = parse(Buffer.from(payload, "base64url").toString("utf8"));
    const swarmId = String(claims.swarm_id);
    const swarm = this.swarms.get(swarmId);
    if (swarm === undefined) return refusal(404, "SWARM_NOT_FOUND");
    const master = swarm.members.get(swarm.master);
    const signed = Buffer.from(`${header}.${payload}`);
    if (master === undefined || !holds(master.public_key, signed, Buffer.from(signature, "base64url"))) {
      return refusal(401, "INVALID_SIGNATURE");
    }
    if (!isRecord(sender)) return unprocessable("sender", "Field required");
    const joiner = {
      agent_id: String(sender.agent_id),
      endpoint: String(sender.endpoint),
      public_key: String(sender.public_key),
    };
    if (!swarm.members.has(joiner.agent_id)) {
      swarm.members.set(joiner.agent_id, joiner);
      // Announced before the joining agent has its response, and without headers.
      const joinedAt = new Date(this.#now()).toISOString();
      const key = this.#later ? `, "public_key": "${joiner.public_key}"` : "";
      const content = `{"type": "system", "action": "member_joined", "swarm_id": "${swarmId}", "agent_id": "${joiner.agent_id}", "endpoint": "${joiner.endpoint}", "joined_at": "${joinedAt}"${key}}`;
      const others = this.#others(swarm).filter(({ agent_id }) => agent_id !== joiner.agent_id);
      for (const member of others) {
        await this.#post(member, this.#signed(swarmId, "broadcast", "system", content), {});
      }
    }
    const members = [...swarm.members.values()];
    return json(200, { status: "accepted", swarm_id: swarmId, swarm_name: swarm.name, members });
  }

  // --- its command line -----------------------------------------------------------------------------------------------

  create(name: string): string {
    const id = crypto.randomUUID();
    const { agentId: agent_id, endpoint, publicKey: public_key } = this;
    const members = new Map([[agent_id, { agent_id, endpoint, public_key }]]);
    this.swarms.set(id, { name, master: agent_id, members });
    return id;
  }

  invite(swarmId: string): string {
    const now = this.#now();
    const claims = {
      swarm_id: swarmId,
      master: this.agentId,
      endpoint: this.endpoint,
      iat: Math.floor(now / 1_000),
      expires_at: new Date(now + 86_400_000).toISOString(),
      max_uses: 1,
    };
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const text = `${part({ alg: "EdDSA", typ: "JWT" })}.${part(claims)}`;
    const token = `${text}.${sign(null, Buffer.from(text), this.#key).toString("base64url")}`;
    return `swarm://${swarmId}@${new URL(this.endpoint).host}?token=${token}`;
  }

  /** Trusts the token and the response, but requires a name and itself in the list. */
  async join(inviteUrl: string): Promise<string> {
    const token = inviteUrl.slice(inviteUrl.indexOf("?token=") + "?token=".length);
    const claims = parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    const { agentId: agent_id, endpoint, publicKey: public_key } = this;
    const body = JSON.stringify({
      type: "system",
      action: "join_request",
      invite_token: token,
      sender: { agent_id, endpoint, public_key },
    });
    const url = `${String(claims.endpoint)}/join`;
    const answer = await this.#fetch({ method: "POST", url, body, headers: this.#headers() });
    if (answer.status === 202) throw new Error("join: pending");
    if (answer.status !== 200) throw new Error(`join: ${answer.status} ${complaint(answer)}`);
    const { swarm_name, members } = parse(answer.body);
    if (typeof swarm_name !== "string" || swarm_name === "") throw new Error("join: swarm_name is required");
    if (!Array.isArray(members) || members.length === 0) throw new Error("join: members are required");
    const listed = new Map<string, Member>();
    for (const one of members) {
      if (!String(one.endpoint).startsWith("https://") || one.public_key === "")
        throw new Error("join: bad member");
      listed.set(one.agent_id, one);
    }
    if (!listed.has(agent_id)) throw new Error("join: not in the list");
    const swarmId = String(claims.swarm_id);
    const known = this.swarms.get(swarmId);
    if (known === undefined) {
      this.swarms.set(swarmId, { name: swarm_name, master: String(claims.master), members: listed });
    }
    // Known members stay, even if they are no longer in the master's list.
    for (const [id, one] of listed) if (known?.members.has(id) === false) known.members.set(id, one);
    return swarmId;
  }

  /** Returns the response statuses; anything but 200 and 202 counts as a failure. */
  async send(swarmId: string, content: string, to = "broadcast"): Promise<number[]> {
    const swarm = this.#swarm(swarmId);
    const recipients = this.#others(swarm).filter(({ agent_id }) => to === "broadcast" || agent_id === to);
    const message = this.#signed(swarmId, to, "message", content);
    return Promise.all(recipients.map((member) => this.#post(member, message, this.#headers())));
  }

  async leave(swarmId: string): Promise<void> {
    const content = `{"action":"member_left","agent_id":"${this.agentId}"}`;
    const message = this.#signed(swarmId, "broadcast", "system", content);
    await this.#announce(this.#others(this.#swarm(swarmId)), message);
    this.swarms.delete(swarmId);
  }

  /** Inserts the reason without escaping. */
  async kick(swarmId: string, target: string, reason?: string): Promise<void> {
    const swarm = this.#swarm(swarmId);
    const member = swarm.members.get(target);
    if (member === undefined) throw new Error("kick: no such member");
    const why = reason === undefined ? "" : `,"reason":"${reason}"`;
    const told = `{"action":"kicked","agent_id":"${target}"${why}}`;
    await this.#post(member, this.#signed(swarmId, target, "system", told), this.#headers());
    const message = this.#signed(
      swarmId,
      "broadcast",
      "system",
      `{"action":"member_kicked","agent_id":"${target}"${why}}`,
    );
    await this.#announce(
      this.#others(swarm).filter(({ agent_id }) => agent_id !== target),
      message,
    );
    swarm.members.delete(target);
  }

  #swarm(swarmId: string): Known {
    const swarm = this.swarms.get(swarmId);
    if (swarm === undefined) throw new Error("no such swarm");
    return swarm;
  }

  #others({ members }: Known): Member[] {
    return [...members.values()].filter(({ agent_id }) => agent_id !== this.agentId);
  }

  #headers() {
    return { "Content-Type": "application/json", "X-Agent-ID": this.agentId, "X-Swarm-Protocol": "0.1.0" };
  }

  /** Notifies once and ignores failures. */
  async #announce(members: readonly Member[], message: object): Promise<void> {
    for (const member of members) await this.#post(member, message, this.#headers()).catch(() => undefined);
  }

  async #post(member: Member, message: object, headers: Readonly<Record<string, string>>): Promise<number> {
    const url = `${member.endpoint.replace(/\/+$/u, "")}/message`;
    const answer = await this.#fetch({ method: "POST", url, body: JSON.stringify(message), headers });
    if (answer.status >= 400) complaint(answer);
    return answer.status;
  }

  #signed(swarm_id: string, recipient: string, type: string, content: string) {
    const message_id = crypto.randomUUID();
    const timestamp = new Date(this.#now()).toISOString();
    const digest = createHash("sha256")
      .update(message_id + timestamp + swarm_id + recipient + type + content, "utf8")
      .digest();
    return {
      protocol_version: "0.1.0",
      message_id,
      timestamp,
      sender: { agent_id: this.agentId, endpoint: this.endpoint },
      recipient,
      swarm_id,
      type,
      content,
      signature: sign(null, digest, this.#key).toString("base64"),
    };
  }
}

/** Whether a message on the wire has a signature of this key, following the specification. */
export function signedBy(publicKey: string, message: Readonly<Record<string, string>>): boolean {
  const { message_id, timestamp, swarm_id, recipient, type, content, signature = "" } = message;
  const digest = createHash("sha256")
    .update(`${message_id}${timestamp}${swarm_id}${recipient}${type}${content}`, "utf8")
    .digest();
  return holds(publicKey, digest, Buffer.from(signature, "base64"));
}

function holds(publicKey: string, data: Uint8Array, signature: Uint8Array): boolean {
  const prefix = Buffer.from("302a300506032b6570032100", "hex");
  const der = Buffer.concat([prefix, Buffer.from(publicKey, "base64")]);
  return verify(null, data, createPublicKey({ key: der, format: "der", type: "spki" }), signature);
}

/** Supports errors in object form only and fails on any other. */
function complaint({ body }: Answer): string {
  const { error } = parse(body);
  if (!isRecord(error) || typeof error.code !== "string")
    throw new TypeError("string indices must be integers");
  return error.code;
}

function parse(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  return isRecord(value) ? value : {};
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function json(status: number, body: unknown): Answer {
  return { status, body: JSON.stringify(body) };
}

function refusal(status: number, code: string): Answer {
  return json(status, { error: { code, message: code, details: null } });
}

function unprocessable(field: string, msg: string): Answer {
  return json(422, { detail: [{ type: "missing", loc: ["body", field], msg, input: {} }] });
}
