/**
 * Agents of the swarm that live in other processes (decisions B18, F5). Whoever registers under such an agent's name
 * with its member token is sent the agent's mail as `map/message`, and answers by a plain reply or by
 * `mailroom/answer`. The engine owns the mail: what is not answered when the connection ends goes back to it.
 */

import { z } from "zod";
import type { AgentAnswer } from "../../engine/agent.js";
import { type Lending, RuntimeError } from "../../engine/runtime/index.js";
import { pauseFor } from "../../net/index.js";
import { MapError } from "../domain/errors.js";
import { parseParams } from "../domain/params.js";
import type { Address } from "../server/addresses.js";
import type { Agent } from "../server/agents.js";
import type { MapConnection } from "../server/connection.js";
import type { MapServer } from "../server/map-server.js";
import { notInATask, type SendResult } from "../server/messages.js";
import { withSession } from "../server/methods/with-session.js";
import type { MethodTable } from "../server/methods.js";
import { isRecord, notificationFrame } from "../server/rpc.js";
import type { Session } from "../server/session.js";
import { mapErrorOf, type TaskBook } from "./book.js";
import { LentMail } from "./lent-mail.js";
import { deliveryOf, plainAnswer, targetOf } from "./mail-as-map.js";
import type { SwarmSide } from "./swarm-side.js";

/** Messages, each of another task, that one agent has in hand at most. */
const MOST_LENT = 64;

/** The SDK loses what reaches it before its application has set a handler. */
const SETTLING = 25;

/** Milliseconds until mail is asked for again after the store has failed; twice as many each time. */
const FIRST_RETRY = 100;
const LONGEST_RETRY = 10_000;

const lentParams = {
  messageId: z.string().min(1),
  attempt: z.int().min(1),
  /** Needed only where two tasks have mail of the same id. */
  conversationId: z.string().optional(),
};

const answerParams = z.object({
  ...lentParams,
  calls: z
    .array(
      z.object({
        id: z.string().min(1).max(256).optional(),
        name: z.string().min(1).max(256),
        args: z.record(z.string(), z.unknown()).optional(),
      }),
    )
    .max(100)
    .optional(),
  /** Without calls: said to the sender. */
  text: z.string().optional(),
});

const releaseParams = z.object(lentParams);

/** A process that serves an agent. */
interface Service {
  readonly agent: string;
  readonly session: Session;
  /** What is lent went into this one: a session that goes on over another has not got it. */
  readonly connection: MapConnection;
  readonly stopped: AbortController;
  readonly lent: LentMail;
  room: (() => void) | undefined;
}

export class RemoteAgents {
  readonly methods: MethodTable;
  readonly #server: MapServer;
  readonly #swarm: SwarmSide;
  readonly #tasks: TaskBook | undefined;
  /** By agent: the newest registration serves. */
  readonly #services = new Map<string, Service>();
  readonly #ending = new Set<Promise<void>>();

  constructor(server: MapServer, swarm: SwarmSide, tasks: TaskBook | undefined) {
    this.#server = server;
    this.#swarm = swarm;
    this.#tasks = tasks;
    this.methods = {
      "mailroom/answer": withSession(async ({ session, params }) => {
        const { calls = [], text, ...named } = parseParams(answerParams, params);
        const { service, lending } = this.#require(session, named);
        const answer: AgentAnswer = {
          calls: calls.map(({ id, name, args = {} }) => ({ id: id ?? server.ids.uuid(), name, args })),
          ...(text !== undefined && { text }),
        };
        await this.#answer(service, lending, answer);
        return { accepted: true };
      }),
      "mailroom/release": withSession(async ({ session, params }) => {
        const { service, lending } = this.#require(session, parseParams(releaseParams, params));
        service.lent.delete(lending);
        service.room?.();
        await this.#release(lending);
        return { released: true };
      }),
    };
  }

  /** Begins to send an agent its mail, if it is one of the swarm's remote agents and comes with its token. */
  serve({ id, session }: Agent): void {
    if (!this.#isRemote(id) || session.principal?.role !== "member" || session.principal.id !== id) return;
    const { connection } = session;
    // Lost while it registered: mail waits for somebody who is there.
    if (connection === undefined) return;
    const known = this.#services.get(id);
    if (known?.connection === connection && !known.stopped.signal.aborted) return;
    if (known !== undefined) this.#stop(known);
    const service: Service = {
      agent: id,
      session,
      connection,
      stopped: new AbortController(),
      lent: new LentMail(),
      room: undefined,
    };
    this.#services.set(id, service);
    this.#server.clock.after(SETTLING, () => {
      this.#run(service).catch(this.#server.report);
    });
  }

  /** The session's connection is gone, or one of its agents is. */
  left(session: Session, agent?: string): void {
    for (const service of [...this.#services.values()]) {
      if (service.session !== session || (agent !== undefined && service.agent !== agent)) continue;
      this.#stop(service);
      this.#services.delete(service.agent);
    }
  }

  /**
   * Takes a `map/send` that is mail of the swarm. Nothing if it is none.
   * @throws MapError INVALID_PARAMS for mail to an agent of the swarm that belongs to no message in hand (decisions F5)
   */
  async send(
    session: Session,
    address: Address,
    { payload, meta = {} }: { readonly payload?: unknown; readonly meta?: Readonly<Record<string, unknown>> },
  ): Promise<SendResult | undefined> {
    const target = targetOf(address);
    const held = this.#named(session, meta);
    if (held === undefined) {
      if (target === undefined || !this.#server.isReserved(target)) return undefined;
      throw notInATask(target);
    }
    const { service, lending } = held;
    if (target === undefined) {
      throw new MapError("INVALID_PARAMS", "to: an answer to mail of the swarm goes to one agent");
    }
    const { key } = lending;
    const before = await this.#tasks?.latestTurnOf(key, service.agent);
    await this.#answer(service, lending, plainAnswer(lending, target, payload, this.#server.ids.uuid()));
    const turn = await this.#tasks?.latestTurnOf(key, service.agent);
    const said = turn?.id === before?.id ? undefined : turn;
    return {
      messageId: said?.source.type === "intercepted" ? said.source.messageId : this.#server.ids.ordered(),
      // What the engine did not let through (comm_targets) it has told the agent about.
      delivered: said === undefined && this.#tasks !== undefined ? [] : [target],
      ...(said !== undefined && { _meta: { mail: { recorded: true, turnId: said.id } } }),
    };
  }

  /** Puts back everything that is lent. */
  async close(): Promise<void> {
    for (const service of this.#services.values()) this.#stop(service);
    this.#services.clear();
    await Promise.all(this.#ending);
  }

  // --- inside ---------------------------------------------------------------------------------------------------

  #isRemote(agent: string): boolean {
    return this.#swarm.rules.agents.get(agent)?.remote === true;
  }

  async #run(service: Service): Promise<void> {
    const { agent, connection, stopped, lent } = service;
    const { signal } = stopped;
    let retryAfter = FIRST_RETRY;
    while (!signal.aborted) {
      if (lent.size >= MOST_LENT) {
        await new Promise<void>((resolve) => {
          service.room = resolve;
        });
        continue;
      }
      let lending: Lending | undefined;
      try {
        lending = await this.#swarm.remote.next(agent, { signal });
      } catch (error) {
        // One message that could not be lent must not keep the others from the agent.
        this.#server.report(error);
        await pauseFor(this.#server.clock, retryAfter, signal);
        retryAfter = Math.min(retryAfter * 2, LONGEST_RETRY);
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
    service.room?.();
    const lent = service.lent.takeAll();
    const ending = Promise.all(lent.map((lending) => this.#release(lending))).then(() => {});
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }

  async #release(lending: Lending): Promise<void> {
    try {
      await this.#swarm.remote.release(lending, lending.message.id);
    } catch (error) {
      // Answered, cancelled or lent again meanwhile: then there is nothing to put back.
      if (!(error instanceof RuntimeError)) this.#server.report(error);
    }
  }

  async #answer(service: Service, lending: Lending, answer: AgentAnswer): Promise<void> {
    const { id } = lending.message;
    try {
      await this.#swarm.remote.answer(lending, id, answer);
    } catch (error) {
      if (!(error instanceof RuntimeError)) throw error;
      // It can be answered again unless it is no longer this agent's.
      if (error.code === "stale_attempt") this.#forget(service, lending);
      throw mapErrorOf(error);
    }
    this.#forget(service, lending);
  }

  #forget(service: Service, lending: Lending): void {
    service.lent.delete(lending);
    service.room?.();
  }

  /** @throws MapError PERMISSION_DENIED, INVALID_PARAMS */
  #require(
    session: Session,
    { messageId, attempt, conversationId }: z.infer<typeof releaseParams>,
  ): { readonly service: Service; readonly lending: Lending } {
    const service = this.#serviceOf(session);
    if (service === undefined) {
      throw new MapError("PERMISSION_DENIED", "this connection serves no remote agent of the swarm");
    }
    const lending = service.lent.byMessage(messageId, conversationId);
    if (lending === undefined || lending.attempt !== attempt) {
      throw new MapError(
        "INVALID_PARAMS",
        `message ${messageId.slice(0, 100)} is not in this agent's hands`,
        {
          reason: "stale_attempt",
          ...(lending !== undefined && { attempt: lending.attempt }),
        },
      );
    }
    return { service, lending };
  }

  #serviceOf(session: Session): Service | undefined {
    for (const service of this.#services.values()) if (service.session === session) return service;
    return undefined;
  }

  /** The message in hand that a `map/send` names: by its correlation id, or by the conversation of its task. */
  #named(
    session: Session,
    meta: Readonly<Record<string, unknown>>,
  ): { readonly service: Service; readonly lending: Lending } | undefined {
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
