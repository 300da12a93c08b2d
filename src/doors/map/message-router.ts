/**
 * Live delivery (`map/send`): ephemeral (decision F6), with `meta` unchanged (REF-30), and recorded when it has
 * `meta.mail`.
 */

import type { Clock, Ids } from "../../base/index.js";
import {
  type Actor,
  type ConversationService,
  type EventLog,
  MapError,
  mailMeta,
  parseParams,
  roughSize,
  type WireError,
} from "../../conversations/index.js";
import type { Access } from "./access.js";
import {
  type Address,
  type Directory,
  namedRecipients,
  type Recipient,
  type Resolved,
  resolveAddress,
} from "./addresses.js";
import { HeldMessages } from "./held-messages.js";
import { notificationFrame } from "./rpc.js";
import type { Session } from "./session.js";
import type { MapLimits } from "./settings.js";
import { toMapError } from "./to-map-error.js";

export interface Message {
  readonly id: string;
  readonly from: string;
  /** The address as the sender wrote it. */
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

/**
 * The SDK loses messages that arrive before its application sets a handler. Measured as safe from 1 ms on.
 */
const SETTLING = 25;

/** The error for a send to an agent of the swarm that belongs to no lent message (decision F5). */
export function notInTask(id: string): MapError {
  return new MapError(
    "INVALID_PARAMS",
    `to: ${id} is an agent of the swarm; only its colleagues write to it, in reply to their mail. Users write to its task, with mail/turn in the task's conversation or with POST /message`,
    { reason: "not_in_a_task", agentId: id },
  );
}

export interface MessageRouterParts {
  readonly access: Access;
  readonly directory: Directory;
  /** Absent when mail is switched off. */
  readonly conversations: ConversationService | undefined;
  readonly log: EventLog;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly limits: MapLimits;
  readonly report: (error: unknown) => void;
}

export class MessageRouter {
  readonly #parts: MessageRouterParts;
  /** Messages that arrived while the session was disconnected. */
  readonly held: HeldMessages;
  readonly #settling = new Map<Session, () => void>();

  constructor(parts: MessageRouterParts) {
    this.#parts = parts;
    this.held = new HeldMessages(parts.limits, parts.clock);
  }

  /**
   * @throws MapError PERMISSION_DENIED for member tokens: an agent of the swarm writes within its tasks only
   */
  assertCanSend({ principal }: Session): void {
    if (principal?.role !== "member") return;
    throw new MapError(
      "PERMISSION_DENIED",
      `this token serves the agent ${principal.id}, which can only reply to its mail`,
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
    const { ids, clock, conversations } = this.#parts;
    this.assertCanSend(session);
    const { recipients, direct } = this.#resolve(address, session);
    const message: Message = {
      id: ids.ordered(),
      from: session.acting,
      to: params.to,
      timestamp: clock.now(),
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
    if (params.meta?.mail === undefined || conversations === undefined) return result;
    const enrolling = direct ? recipients.filter(({ kind }) => kind === "agent").map(({ id }) => id) : [];
    const mail = await this.#record(conversations, session.actor, message, enrolling, sent);
    return { ...result, _meta: { mail } };
  }

  /** The session has sent a request, so its client is ready for held messages. */
  requestReceived(session: Session): void {
    if (this.#settling.has(session)) this.#flush(session);
  }

  /** The session has reconnected; held messages follow shortly. */
  sessionReturned(session: Session): void {
    if (!this.held.has(session)) return;
    this.#settling.set(
      session,
      this.#parts.clock.after(SETTLING, () => this.#flush(session)),
    );
  }

  /** The session has ended. */
  forget(session: Session): void {
    this.held.take(session);
    this.#settling.get(session)?.();
    this.#settling.delete(session);
  }

  close(): void {
    this.held.close();
    for (const cancel of this.#settling.values()) cancel();
  }

  /**
   * Agents of the swarm receive mail within their tasks only: groups leave them out, and naming one is an
   * error.
   */
  #resolve(address: Address, sender: Session): Resolved {
    const { access, directory } = this.#parts;
    const named = namedRecipients(address).find((id) => access.isReserved(id));
    if (named !== undefined) throw notInTask(named);
    const { recipients, direct } = resolveAddress(address, sender, directory);
    const isOfSwarm = (recipient: Recipient): boolean =>
      sessionOf(recipient).principal?.role === "member" || access.isReserved(recipient.id);
    const refused = direct ? recipients.find(isOfSwarm) : undefined;
    if (refused !== undefined) throw notInTask(refused.id);
    return { recipients: recipients.filter((recipient) => !isOfSwarm(recipient)), direct };
  }

  #flush(session: Session): void {
    this.#settling.get(session)?.();
    this.#settling.delete(session);
    for (const frame of this.held.take(session)) session.connection?.send(frame);
  }

  /** False if the recipient is disconnected; the message is then held for a while. */
  #deliver(recipient: Recipient, frame: string): boolean {
    const session = sessionOf(recipient);
    // Held messages go first.
    if (session.connection !== undefined && !this.held.has(session)) {
      session.connection.send(frame);
      return true;
    }
    this.held.add(session, frame);
    return false;
  }

  /**
   * Emits an event for the sender and the recipients. Observers learn that a message was sent, but not its
   * content.
   */
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
    const whole = { ...facts, message };
    const parties = new Set([message.from, sender.participantId, ...recipients.map(({ id }) => id)]);
    const isParty = (actor: Actor): boolean =>
      actor.space === sender.space && [...actor.identities].some((id) => parties.has(id));
    const role = this.#parts.directory.agents.find(sender.space, message.from)?.role;
    return this.#parts.log.emit({
      type,
      source: message.from,
      ...(role !== undefined && { sourceRole: role }),
      data: facts,
      ...(causedBy !== undefined && { causedBy }),
      isFor: (actor) => isParty(actor) || (actor.observer && actor.space === sender.space),
      dataFor: (actor) => (isParty(actor) ? whole : facts),
      size: roughSize(message),
    });
  }

  /** A failure to record never affects delivery. */
  async #record(
    conversations: ConversationService,
    actor: Actor,
    message: Message,
    recipients: readonly string[],
    sent: string,
  ): Promise<Recorded> {
    const { clock, limits, report } = this.#parts;
    let cancel = (): void => {};
    const timeout = new Promise<never>((_resolve, reject) => {
      cancel = clock.after(limits.recordingTimeout, () =>
        reject(new MapError("EXHAUSTED", "the turn was not recorded in time; it may be recorded later")),
      );
    });
    try {
      const mail = parseParams(mailMeta, message.meta?.mail);
      const recording = conversations.intercept(actor, mail.conversationId, {
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
      const { code, message: reason } = toMapError(error, "map/send", report).toWire();
      return { recorded: false, error: { code, message: reason } };
    } finally {
      cancel();
    }
  }
}

function sessionOf(recipient: Recipient): Session {
  return recipient.kind === "agent" ? recipient.agent.session : recipient.session;
}
