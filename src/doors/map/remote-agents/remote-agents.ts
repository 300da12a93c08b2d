/**
 * Agents of the swarm that run in other processes (decision B18, decision F5). A connection that registers under such
 * an agent's name with its member token receives the agent's mail as `map/message`, and answers by a plain reply or
 * by `mailroom/answer`. The engine owns the mail: unanswered mail returns to it when the connection ends.
 */

import type { Clock, Ids } from "../../../base/index.js";
import { isPublicError, isRecord, sleep } from "../../../base/index.js";
import { fromMailroomError, MapError, type TaskConversations } from "../../../conversations/index.js";
import type { LentMessage, Runtime, TurnResult } from "../../../engine/index.js";

import type { Access } from "../access.js";
import type { Address } from "../addresses.js";
import type { Agent } from "../connected-agents.js";
import { notInTask, type SendResult } from "../message-router.js";
import { notificationFrame } from "../rpc.js";
import type { Session, SessionConnection } from "../session.js";
import { LentMessages } from "./lent-messages.js";
import { deliveryOf, plainAnswer, targetOf } from "./mail-as-map.js";

/** Messages lent to one agent at once, each from a different task. */
const MAX_LENT = 64;

/** The SDK loses messages that arrive before its application sets a handler. */
const SETTLING = 25;

/** Milliseconds until the next attempt after the store failed; doubles each time. */
const FIRST_RETRY = 100;
const MAX_RETRY = 10_000;

/** What MAP needs of the engine. */
export type RuntimePort = Pick<
  Runtime,
  "post" | "cancel" | "answerBreakpoint" | "answerApprovals" | "rules" | "remote"
>;

/** Identifies a message that is lent to an agent. */
export interface LentMessageName {
  readonly messageId: string;
  readonly attempt: number;
  /** Needed only if two tasks have a message with this id. */
  readonly conversationId?: string | undefined;
}

export interface RemoteAgentsParts {
  readonly access: Access;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly report: (error: unknown) => void;
  readonly swarm: RuntimePort;
  readonly tasks: TaskConversations | undefined;
}

/** A process that serves an agent. */
interface Service {
  readonly agent: string;
  readonly session: Session;
  /** Messages were lent over this connection; another connection of the session has not received them. */
  readonly connection: SessionConnection;
  readonly stopped: AbortController;
  readonly lent: LentMessages;
  slotFreed: (() => void) | undefined;
}

export class RemoteAgents {
  readonly #parts: RemoteAgentsParts;
  /** By agent. The newest registration serves. */
  readonly #services = new Map<string, Service>();
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: RemoteAgentsParts) {
    this.#parts = parts;
  }

  /** @throws MapError PERMISSION_DENIED, INVALID_PARAMS */
  async answer(session: Session, named: LentMessageName, answer: TurnResult): Promise<void> {
    const { service, lending } = this.#require(session, named);
    await this.#answer(service, lending, answer);
  }

  /** The agent cannot answer. @throws MapError PERMISSION_DENIED, INVALID_PARAMS */
  async fail(session: Session, named: LentMessageName, reason: string): Promise<void> {
    const { service, lending } = this.#require(session, named);
    await this.#settle(service, lending, () =>
      this.#parts.swarm.remote.fail(lending, lending.message.id, reason),
    );
  }

  /** Returns the message to the engine. @throws MapError PERMISSION_DENIED, INVALID_PARAMS */
  async release(session: Session, named: LentMessageName): Promise<void> {
    const { service, lending } = this.#require(session, named);
    service.lent.delete(lending);
    service.slotFreed?.();
    await this.#release(lending);
  }

  isServedBy({ id }: Agent, session: Session): boolean {
    return this.#services.get(id)?.session === session;
  }

  /** Starts to send an agent its mail, if it is a remote agent of the swarm and uses its own token. */
  serve({ id, session }: Agent): void {
    if (!this.#isRemote(id) || session.principal?.role !== "member" || session.principal.id !== id) return;
    const { connection } = session;
    // Disconnected while registering: its mail waits for the next connection.
    if (connection === undefined) return;
    const known = this.#services.get(id);
    if (known?.connection === connection && !known.stopped.signal.aborted) return;
    if (known !== undefined) this.#stop(known);
    const service: Service = {
      agent: id,
      session,
      connection,
      stopped: new AbortController(),
      lent: new LentMessages(),
      slotFreed: undefined,
    };
    this.#services.set(id, service);
    this.#parts.clock.after(SETTLING, () => {
      this.#run(service).catch(this.#parts.report);
    });
  }

  /** The session has lost its connection, or one of its agents was removed. */
  left(session: Session, agent?: string): void {
    for (const service of [...this.#services.values()]) {
      if (service.session !== session || (agent !== undefined && service.agent !== agent)) continue;
      this.#stop(service);
      this.#services.delete(service.agent);
    }
  }

  /**
   * Handles a `map/send` that is mail of the swarm. Returns nothing if it is not.
   * @throws MapError INVALID_PARAMS for mail to an agent of the swarm that belongs to no lent message (decision F5)
   */
  async send(
    session: Session,
    address: Address,
    { payload, meta = {} }: { readonly payload?: unknown; readonly meta?: Readonly<Record<string, unknown>> },
  ): Promise<SendResult | undefined> {
    const target = targetOf(address);
    const held = this.#named(session, meta);
    if (held === undefined) {
      if (target === undefined || !this.#parts.access.isReserved(target)) return undefined;
      throw notInTask(target);
    }
    const { service, lending } = held;
    if (target === undefined) {
      throw new MapError("INVALID_PARAMS", "to: a reply to mail of the swarm must have one recipient");
    }
    const { key } = lending;
    const before = await this.#parts.tasks?.latestTurnOf(key, service.agent);
    await this.#answer(service, lending, plainAnswer(lending, target, payload, this.#parts.ids.uuid()));
    const turn = await this.#parts.tasks?.latestTurnOf(key, service.agent);
    const said = turn?.id === before?.id ? undefined : turn;
    return {
      messageId: said?.source.type === "intercepted" ? said.source.messageId : this.#parts.ids.ordered(),
      // Mail outside comm_targets is not delivered; the engine notifies the agent by mail.
      delivered: said === undefined && this.#parts.tasks !== undefined ? [] : [target],
      ...(said !== undefined && { _meta: { mail: { recorded: true, turnId: said.id } } }),
    };
  }

  /** Returns all lent messages to the engine. */
  async close(): Promise<void> {
    for (const service of this.#services.values()) this.#stop(service);
    this.#services.clear();
    await Promise.all(this.#ending);
  }

  // --- inside ---------------------------------------------------------------------------------------------------

  #isRemote(agent: string): boolean {
    return this.#parts.swarm.rules.agents.get(agent)?.remote === true;
  }

  async #run(service: Service): Promise<void> {
    const { agent, connection, stopped, lent } = service;
    const { signal } = stopped;
    let retryAfter = FIRST_RETRY;
    while (!signal.aborted) {
      if (lent.size >= MAX_LENT) {
        await new Promise<void>((resolve) => {
          service.slotFreed = resolve;
        });
        continue;
      }
      let lending: LentMessage | undefined;
      try {
        lending = await this.#parts.swarm.remote.next(agent, { signal });
      } catch (error) {
        // One message that cannot be lent must not block the others.
        this.#parts.report(error);
        await sleep(this.#parts.clock, retryAfter, signal).catch(() => {});
        retryAfter = Math.min(retryAfter * 2, MAX_RETRY);
        continue;
      }
      if (lending === undefined) return;
      retryAfter = FIRST_RETRY;
      if (signal.aborted) {
        await this.#release(lending);
        return;
      }
      lent.add(lending);
      connection.send(notificationFrame("map/message", { message: deliveryOf(lending) }));
    }
  }

  #stop(service: Service): void {
    service.stopped.abort();
    service.slotFreed?.();
    const lent = service.lent.takeAll();
    const ending = Promise.all(lent.map((lending) => this.#release(lending))).then(() => {});
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }

  async #release(lending: LentMessage): Promise<void> {
    try {
      await this.#parts.swarm.remote.release(lending, lending.message.id);
    } catch (error) {
      // Answered, canceled or lent again meanwhile: nothing to release.
      if (!isPublicError(error)) this.#parts.report(error);
    }
  }

  #answer(service: Service, lending: LentMessage, answer: TurnResult): Promise<void> {
    return this.#settle(service, lending, () =>
      this.#parts.swarm.remote.answer(lending, lending.message.id, answer),
    );
  }

  async #settle(service: Service, lending: LentMessage, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!isPublicError(error)) throw error;
      // The agent may retry unless the message is no longer lent to it.
      if (error.code === "stale_attempt") this.#forget(service, lending);
      throw fromMailroomError(error);
    }
    this.#forget(service, lending);
  }

  #forget(service: Service, lending: LentMessage): void {
    service.lent.delete(lending);
    service.slotFreed?.();
  }

  /** @throws MapError PERMISSION_DENIED, INVALID_PARAMS */
  #require(
    session: Session,
    { messageId, attempt, conversationId }: LentMessageName,
  ): { readonly service: Service; readonly lending: LentMessage } {
    const service = this.#serviceOf(session);
    if (service === undefined) {
      throw new MapError("PERMISSION_DENIED", "this connection does not serve a remote agent of the swarm");
    }
    const lending = service.lent.byMessage(messageId, conversationId);
    if (lending === undefined || lending.attempt !== attempt) {
      throw new MapError("INVALID_PARAMS", `message ${messageId.slice(0, 100)} is not lent to this agent`, {
        reason: "stale_attempt",
        ...(lending !== undefined && { attempt: lending.attempt }),
      });
    }
    return { service, lending };
  }

  #serviceOf(session: Session): Service | undefined {
    for (const service of this.#services.values()) if (service.session === session) return service;
    return undefined;
  }

  /** The lent message that a `map/send` answers, by correlation id or by the conversation of its task. */
  #named(
    session: Session,
    meta: Readonly<Record<string, unknown>>,
  ): { readonly service: Service; readonly lending: LentMessage } | undefined {
    const service = this.#serviceOf(session);
    if (service === undefined) return undefined;
    const { mail, correlationId } = meta;
    const conversation = isRecord(mail) ? mail.conversationId : undefined;
    const { lent } = service;
    const byId = typeof correlationId === "string" ? lent.byMessage(correlationId, conversation) : undefined;
    const lending = byId ?? lent.byConversation(conversation);
    return lending === undefined ? undefined : { service, lending };
  }
}
