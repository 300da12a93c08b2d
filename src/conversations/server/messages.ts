/** Live delivery (`map/send`): ephemeral by its seed, with `meta` untouched, and recorded when `meta.mail` says so. */
import type { Conversations } from "../book/conversations.js";
import { MapError, type WireError } from "../domain/errors.js";
import { mailMeta, parseParams } from "../domain/params.js";
import { roughSize } from "../domain/size.js";
import type { Caller } from "../domain/types.js";
import { type Address, namedIn, type Recipient, type Resolved, resolveAddress } from "./addresses.js";
import type { MapServer } from "./map-server.js";
import { notificationFrame } from "./rpc.js";
import type { Session } from "./session.js";

export interface Message {
  readonly id: string;
  readonly from: string;
  /** As it was written. */
  readonly to: unknown;
  readonly timestamp: number;
  readonly payload?: unknown;
  readonly meta?: Readonly<Record<string, unknown>>;
}

export interface SendResult {
  readonly messageId: string;
  readonly delivered: readonly string[];
  readonly _meta?: { readonly mail: Recorded };
}

type Recorded =
  | { readonly recorded: true; readonly turnId: string }
  | { readonly recorded: false; readonly error: Pick<WireError, "code" | "message"> };

interface Held {
  readonly frame: string;
  readonly until: number;
}

/** The SDK loses what reaches it before its application has set a handler; measured to be safe from 1 ms on. */
const SETTLING = 25;

/** Decisions F5. */
export function notInATask(id: string): MapError {
  return new MapError(
    "INVALID_PARAMS",
    `to: ${id} is an agent of the swarm; write to it within a task, in answer to a message (meta.correlationId) or in its conversation (meta.mail.conversationId)`,
    { reason: "not_in_a_task", agentId: id },
  );
}

export class Messages {
  readonly #server: MapServer;
  /** By session: what came while it was away. */
  readonly #held = new Map<Session, Held[]>();
  readonly #settling = new Map<Session, () => void>();

  constructor(server: MapServer) {
    this.#server = server;
  }

  /** @throws MapError PERMISSION_DENIED for those who serve an agent of the swarm: it writes within its tasks */
  assertMaySend({ principal }: Session): void {
    if (principal?.role !== "member") return;
    throw new MapError(
      "PERMISSION_DENIED",
      `this token serves the agent ${principal.id}, which writes in answer to its mail only`,
    );
  }

  async send(
    session: Session,
    address: Address,
    params: {
      readonly to: unknown;
      readonly payload?: unknown;
      readonly meta?: Readonly<Record<string, unknown>>;
    },
  ): Promise<SendResult> {
    const server = this.#server;
    this.assertMaySend(session);
    const { recipients, direct } = this.#resolve(address, session);
    const message: Message = {
      id: server.ids.ordered(),
      from: session.acting,
      to: params.to,
      timestamp: server.clock.now(),
      ...(params.payload !== undefined && { payload: params.payload }),
      ...(params.meta !== undefined && { meta: params.meta }),
    };
    const sent = this.#announce("message_sent", session, recipients, message, { to: params.to });
    const frame = notificationFrame("map/message", { message });
    const delivered = recipients.filter((recipient) => this.#deliver(recipient, frame)).map(({ id }) => id);
    if (delivered.length > 0) {
      this.#announce("message_delivered", session, recipients, message, { deliveredTo: delivered }, [sent]);
    }
    const result: SendResult = { messageId: message.id, delivered };
    const { conversations } = server;
    if (params.meta?.mail === undefined || conversations === undefined) return result;
    const enrolling = direct ? recipients.filter(({ kind }) => kind === "agent").map(({ id }) => id) : [];
    const mail = await this.#record(conversations, session.caller, message, enrolling, sent);
    return { ...result, _meta: { mail } };
  }

  /** The session speaks again: whatever it wanted to set up before it gets mail, it has had the time. */
  spoke(session: Session): void {
    if (this.#settling.has(session)) this.#flush(session);
  }

  /** The session is back: what was held for it follows a little later. */
  returned(session: Session): void {
    if (!this.#held.has(session)) return;
    this.#settling.set(
      session,
      this.#server.clock.after(SETTLING, () => this.#flush(session)),
    );
  }

  /** The session is over. */
  forget(session: Session): void {
    this.#held.delete(session);
    this.#settling.get(session)?.();
    this.#settling.delete(session);
  }

  /** The swarm's agents are written to within their tasks only: they are in no group, and named in vain. */
  #resolve(address: Address, sender: Session): Resolved {
    const server = this.#server;
    const named = namedIn(address).find((id) => server.isReserved(id));
    if (named !== undefined) throw notInATask(named);
    const { recipients, direct } = resolveAddress(address, sender, server.directory);
    const isOfSwarm = (recipient: Recipient): boolean =>
      sessionOf(recipient).principal?.role === "member" || server.isReserved(recipient.id);
    const refused = direct ? recipients.find(isOfSwarm) : undefined;
    if (refused !== undefined) throw notInATask(refused.id);
    return { recipients: recipients.filter((recipient) => !isOfSwarm(recipient)), direct };
  }

  #flush(session: Session): void {
    this.#settling.get(session)?.();
    this.#settling.delete(session);
    const held = this.#held.get(session) ?? [];
    this.#held.delete(session);
    const now = this.#server.clock.now();
    for (const { frame, until } of held) if (until > now) session.connection?.send(frame);
  }

  /** False for somebody who is known but away; the message is then held for a while. */
  #deliver(recipient: Recipient, frame: string): boolean {
    const session = sessionOf(recipient);
    // What is held goes first.
    if (session.connection !== undefined && !this.#held.has(session)) {
      session.connection.send(frame);
      return true;
    }
    const { clock, limits } = this.#server;
    const held = this.#held.get(session) ?? [];
    held.push({ frame, until: clock.now() + limits.heldFor });
    if (held.length > limits.maxHeld) held.shift();
    this.#held.set(session, held);
    return false;
  }

  /** Told to those who have to do with it. Others with the right to watch learn that it happened, not what it said. */
  #announce(
    type: "message_sent" | "message_delivered",
    sender: Session,
    recipients: readonly Recipient[],
    message: Message,
    rest: Readonly<Record<string, unknown>>,
    causedBy?: readonly string[],
  ): string {
    const { meta } = message;
    const facts = {
      messageId: message.id,
      from: message.from,
      ...rest,
      timestamp: message.timestamp,
      ...(typeof meta?.correlationId === "string" && { correlationId: meta.correlationId }),
      ...(typeof meta?.priority === "string" && { priority: meta.priority }),
    };
    const parties = new Set([message.from, sender.participantId, ...recipients.map(({ id }) => id)]);
    const isParty = (caller: Caller): boolean =>
      caller.space === sender.space && [...caller.identities].some((id) => parties.has(id));
    const role = this.#server.agents.find(sender.space, message.from)?.role;
    return this.#server.log.emit({
      type,
      source: message.from,
      ...(role !== undefined && { sourceRole: role }),
      data: facts,
      ...(causedBy !== undefined && { causedBy }),
      isFor: (caller) => isParty(caller) || (caller.observer && caller.space === sender.space),
      dataFor: (caller) => (isParty(caller) ? { ...facts, message } : facts),
      size: roughSize(message),
    });
  }

  /** MAP Mail, Turn Interception, 4: a failure to record never affects delivery. */
  async #record(
    conversations: Conversations,
    caller: Caller,
    message: Message,
    recipients: readonly string[],
    sent: string,
  ): Promise<Recorded> {
    const server = this.#server;
    const { clock, limits } = server;
    let cancel = (): void => {};
    const timeout = new Promise<never>((_resolve, reject) => {
      cancel = clock.after(limits.recordingTimeout, () =>
        reject(new MapError("EXHAUSTED", "the turn was not recorded in time; it may still be")),
      );
    });
    try {
      const mail = parseParams(mailMeta, message.meta?.mail);
      const recording = conversations.intercept(caller, mail.conversationId, {
        messageId: message.id,
        payload: message.payload,
        threadId: mail.threadId,
        inReplyTo: mail.inReplyTo,
        visibility: mail.visibility,
        recipients,
        causedBy: [sent],
      });
      const turn = await Promise.race([recording, timeout]);
      return { recorded: true, turnId: turn.id };
    } catch (error) {
      const { code, message: reason } = server.toMapError(error, "map/send").toWire();
      return { recorded: false, error: { code, message: reason } };
    } finally {
      cancel();
    }
  }
}

function sessionOf(recipient: Recipient): Session {
  return recipient.kind === "agent" ? recipient.agent.session : recipient.session;
}
