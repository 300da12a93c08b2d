/**
 * The carrier to other swarms, one per server. A message is committed to the outbox with the entry that sent it. It
 * ends in one of two ways: the other swarm accepts it, or its sender is notified.
 */

import { performance } from "node:perf_hooks";
import { LRUCache } from "lru-cache";
import type { Clock, Ids } from "../../base/index.js";
import { CircuitBreaker, type Random, type Report } from "../../base/index.js";
import type { Carrier, DeliveryResult, OutgoingMail } from "../../engine/index.js";
import { type Runtime, settleMail } from "../../engine/index.js";
import type { JournalKey, RowWrite } from "../../journal/index.js";
import type { MAILMessage } from "../../mail/index.js";
import {
  checkTaskContributor,
  createAgentAddress,
  formatAgentAddress,
  formatTaskContributor,
  isEndingNotice,
  MAIL_ALL_LOCAL_AGENTS,
  parseTaskContributor,
  recipientsOf,
} from "../../mail/index.js";

import { type Guard, type HttpClient, NetError } from "../../net/index.js";
import {
  type Attempt,
  type AttemptResult,
  Dispatcher,
  enqueue,
  type FinalOutcome,
  type OutboxFinish,
  purgeFinished,
  type StoredItem,
} from "../../outbox/index.js";
import type { FederationStore, LinkPut } from "../ports.js";
import type { KnownSwarm } from "../registry/entry.js";
import type { SwarmRegistry } from "../registry/registry.js";
import type { FederationSettings } from "../settings.js";
import { buildWrapper } from "../wrapper/build.js";
import type { SigningKey } from "../wrapper/signature.js";
import {
  classifyFailure,
  classifyResponse,
  type DeliveryNote,
  type Direction,
  deliveryUnknown,
  type ResponseClass,
} from "./classify-response.js";
import {
  dedupeKeyOf,
  type OutboxPayload,
  readOutboxPayload,
  toOutboxPayload,
  writeOutboxPayload,
} from "./outbox-payload.js";

export const QUEUE = "federation";

export interface RouterParts {
  readonly store: FederationStore;
  readonly registry: SwarmRegistry;
  readonly client: HttpClient;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly settings: FederationSettings;
  readonly local: () => string;
  readonly signingKey: SigningKey | undefined;
  readonly report: Report;
  /** A swarm accepted a message that it may answer, now or in an earlier process. */
  readonly onAccepted: (key: JournalKey, swarm: string) => void;
}

const LARGEST_ANSWER = 256 * 1024;
const MOST_LANES = 10_000;
/** How long finished deliveries are kept, for a task that asks again after a crash. */
const KEEP_FINISHED = 24 * 60 * 60 * 1000;

export class Router implements Carrier {
  readonly #parts: RouterParts;
  readonly #dispatcher: Dispatcher;
  /** Lanes with a completed delivery: the peer has the task. */
  readonly #begun = new LRUCache<string, true>({ max: MOST_LANES });
  readonly #since: number;
  /** Answers that tasks of an earlier process wait for, until `start`. */
  #awaited: (readonly [JournalKey, string])[] = [];
  #runtime: Runtime | undefined;

  constructor(parts: RouterParts) {
    this.#parts = parts;
    this.#since = parts.clock.now();
    const { store, clock, random, settings, report } = parts;
    this.#dispatcher = new Dispatcher(
      { store, reads: store.outbox, clock, random, report },
      {
        queue: QUEUE,
        handler: (attempt) => this.#attempt(attempt),
        settle: (item, final, finish) => this.#settle(item, final, finish),
        concurrency: settings.attempts,
        targetConcurrency: settings.attemptsPerSwarm,
        timeLimit: 2 * settings.attemptTimeout + 5_000,
        backoff: { base: 250, factor: 2, cap: 30_000, jitter: 0.5 },
        // Short pauses, so that a recovered swarm gets its mail soon.
        circuits: new CircuitBreaker({ pause: { base: 500, factor: 2, cap: 5_000, jitter: 0.2 }, random }),
        // A peer without duplicate detection must not receive a message twice, even if a crash interrupted the first
        // attempt (decision E5).
        journalAttempts: ({ target }) => !this.#dedupes(target),
      },
    );
  }

  /** Starts delivering; outcomes go to the runtime. */
  start(runtime: Runtime): void {
    this.#runtime = runtime;
    this.#dispatcher.wake();
    for (const [key, swarm] of this.#awaited) this.#parts.onAccepted(key, swarm);
    this.#awaited = [];
  }

  awaits(key: JournalKey, swarm: string): void {
    if (this.#runtime === undefined) this.#awaited.push([key, swarm]);
    else this.#parts.onAccepted(key, swarm);
  }

  async stop(): Promise<void> {
    await this.#dispatcher.stop();
  }

  /** For administrators. */
  get outbox(): Dispatcher {
    return this.#dispatcher;
  }

  /** Delivers waiting mail now, because the swarm answered. */
  retryNow(swarm: string): void {
    this.#dispatcher.retryNow(swarm);
  }

  /** Returns the row that removes old finished deliveries. */
  purge(): RowWrite {
    return purgeFinished(QUEUE, this.#parts.clock.now() - KEEP_FINISHED);
  }

  owns(swarm: string): boolean {
    return this.#parts.registry.has(swarm);
  }

  rows(mail: OutgoingMail): readonly RowWrite[] | DeliveryResult {
    const reason = this.#rejectionReason(mail);
    if (reason !== undefined) return { ok: false, reason };
    this.#dispatcher.backlog.add(mail.swarm);
    const link: LinkPut = {
      kind: "federation.link.put",
      taskId: mail.task.id,
      link: { peer: mail.swarm, key: mail.task.key },
    };
    return [this.#item(mail), link];
  }

  /** Mail that waits before `start` is delivered by `start`. */
  wake(mails: readonly OutgoingMail[]): void {
    if (this.#runtime !== undefined) this.#dispatcher.wake(mails.map(laneOf));
  }

  async find(mail: OutgoingMail): Promise<DeliveryResult | "waiting" | undefined> {
    const item = await this.#parts.store.outbox.byDedupeKey(QUEUE, dedupeKeyOf(mail));
    if (item === undefined) return undefined;
    return item.outcome === undefined
      ? "waiting"
      : this.#carriage(item.target, item.outcome, item.reason, undefined);
  }

  /** Mail to an inactive swarm fails at once; answers wait until the swarm is back. */
  #rejectionReason({ swarm, message }: OutgoingMail): string | undefined {
    const entry = this.#parts.registry.get(swarm);
    if (entry === undefined) return `no swarm named '${swarm}' is registered`;
    const { maxWaiting } = this.#parts.settings;
    if (this.#dispatcher.backlog.isFull(swarm, maxWaiting)) {
      return `${maxWaiting} messages are already waiting for swarm '${swarm}'`;
    }
    if (entry.isActive || message.msg_type === "response") return undefined;
    const seen =
      entry.lastSeen === null ? "never seen" : `last seen ${new Date(entry.lastSeen).toISOString()}`;
    return `swarm '${swarm}' is inactive (${seen}); it is checked regularly, retry later`;
  }

  #item(mail: OutgoingMail): RowWrite {
    const { clock, ids, settings } = this.#parts;
    const now = clock.now();
    const timeout = mail.message.msg_type === "response" ? settings.answerTimeout : settings.deliveryTimeout;
    // Counted from when it was written: a task resumed after months must not send outdated mail.
    const sentAt = Math.min(Date.parse(mail.message.timestamp), now);
    return enqueue({
      queue: QUEUE,
      id: ids.ordered(),
      lane: laneOf(mail),
      target: mail.swarm,
      payload: writeOutboxPayload(toOutboxPayload(mail)),
      createdAt: now,
      dueAt: now,
      deadlineAt: sentAt + timeout,
      dedupeKey: dedupeKeyOf(mail),
    });
  }

  #dedupes(swarm: string): boolean {
    return this.#parts.registry.get(swarm)?.capabilities.includes("dedupe") === true;
  }

  async #attempt(attempt: Attempt): Promise<AttemptResult> {
    const { item } = attempt;
    const { registry } = this.#parts;
    const swarm = item.target;
    const unreachable = await this.#describeUnknown(swarm);
    if (unreachable !== undefined) return unreachable;
    if (!registry.has(swarm)) return { kind: "refused", reason: `swarm '${swarm}' was unregistered` };
    const token = registry.tokenOf(swarm);
    if (token.kind !== "ready") return { kind: "refused", reason: missingTokenReason(swarm, token) };
    const payload = readOutboxPayload(item.payload);
    const contributors = await this.#contributorsOf(payload).catch(() => undefined);
    // Nothing was sent, so the outcome is certain.
    if (contributors === undefined)
      return { kind: "retry", reason: "the task could not be read", answered: true };
    const direction: Direction = contributors.some((text) => contributorSwarm(text) === swarm)
      ? "back"
      : "forward";
    // A swarm that never accepted the task has nothing to end, and would begin to work on the notice.
    const isAsker = payload.instance.role === "swarm" && payload.instance.id === swarm;
    if (direction === "forward" && isEndingNotice(payload.message) && !isAsker) return { kind: "delivered" };
    const dedupes = this.#dedupes(swarm);
    if (!dedupes && attempt.interrupted && direction === "back") {
      // The peer has written to us since the task was offered, so the offer arrived.
      if (this.#beganTask(item, payload)) return { kind: "delivered" };
      return deliveryUnknown(item.reason ?? "this server stopped during the attempt");
    }
    const facts = { dedupes, uncertain: attempt.interrupted };
    const send = (way: Direction) => {
      const known = contributorsFor(way, contributors, swarm, this.#parts.local());
      return this.#post(swarm, token.token, way, { payload, contributors: known }, facts, attempt.signal);
    };
    const result = await send(direction);
    if (result.kind !== "send_otherwise") return result;
    const second = await send(direction === "forward" ? "back" : "forward");
    return second.kind === "send_otherwise" ? { kind: "refused", reason: result.reason } : second;
  }

  /**
   * A swarm that was unreachable when it was registered may detect duplicates: nothing is sent before that is known.
   * Returns the result of the attempt if the swarm is still unreachable.
   */
  async #describeUnknown(swarm: string): Promise<AttemptResult | undefined> {
    const { registry } = this.#parts;
    try {
      await this.#recorded(swarm, registry.describeUnknown(swarm));
      return undefined;
    } catch (error) {
      if (error instanceof NetError && error.mayHaveArrived) return { kind: "retry", reason: error.message };
      return classifyFailure(error, { direction: "forward", dedupes: false, uncertain: false });
    }
  }

  /** Mail is sent even if the registry was not updated. */
  async #recorded(swarm: string, update: Promise<void>): Promise<void> {
    await update.catch((cause: unknown) => {
      if (cause instanceof NetError) throw cause;
      const message = `recording that swarm '${swarm}' is active failed`;
      this.#parts.report({ code: "registry", message, cause });
    });
  }

  /** Returns whether this message was the task's first to the swarm, as far as this process can tell. */
  #beganTask(item: StoredItem, { contributors }: OutboxPayload): boolean {
    const unknownThen = !contributors.some((text) => contributorSwarm(text) === item.target);
    return unknownThen && item.createdAt >= this.#since && !this.#begun.has(item.lane);
  }

  async #post(
    swarm: string,
    token: string,
    direction: Direction,
    content: { readonly payload: OutboxPayload; readonly contributors: readonly string[] },
    facts: { readonly dedupes: boolean; readonly uncertain: boolean },
    signal: AbortSignal,
  ): Promise<ResponseClass> {
    const { registry, client, clock, guard, settings, signingKey } = this.#parts;
    const entry = registry.get(swarm);
    if (entry === undefined) return { kind: "refused", reason: `swarm '${swarm}' was unregistered` };
    const { owner, hops } = content.payload;
    const { contributors } = content;
    const message = facts.dedupes ? content.payload.message : forOtherImplementations(content.payload, entry);
    const wrapper = buildWrapper({
      message,
      owner,
      hops,
      contributors,
      source: this.#parts.local(),
      target: swarm,
    });
    const signed = signingKey === undefined ? wrapper : signingKey.sign(wrapper);
    const began = performance.now();
    try {
      const answer = await client.request(`${entry.baseUrl}/interswarm/${direction}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json",
          authorization: `Bearer ${token}`,
        },
        body: JSON.stringify({ message: signed }),
        timeLimit: settings.attemptTimeout,
        maxBytes: LARGEST_ANSWER,
        guard,
        signal,
      });
      const latency = (performance.now() - began) / 1000;
      if (!entry.isActive) {
        await this.#recorded(swarm, registry.seen(swarm, { at: clock.now(), latency }));
      }
      const retryAfter = answer.headers["retry-after"];
      const { status } = answer;
      return classifyResponse(
        { status, body: answer.text(), ...(retryAfter !== undefined && { retryAfter }) },
        { ...facts, direction },
        clock.now(),
      );
    } catch (error) {
      return classifyFailure(error, { ...facts, direction });
    }
  }

  /** Returns all contributors known now, including this instance. */
  async #contributorsOf(payload: OutboxPayload): Promise<readonly string[]> {
    const known =
      (await this.#runtime?.read(payload.key, (state) => [...state.contributors])) ?? payload.contributors;
    const own = formatTaskContributor({ ...payload.instance, swarm: this.#parts.local() });
    return known.includes(own) ? known : [...known, own];
  }

  async #settle(item: StoredItem, final: FinalOutcome, finish: OutboxFinish): Promise<void> {
    const { store } = this.#parts;
    const { key, message } = readOutboxPayload(item.payload);
    const carriage = this.#carriage(item.target, final.outcome, final.reason, final.note);
    if (this.#runtime === undefined) throw new Error("federation has not been started");
    const mail = { key, messageId: message.id, swarm: item.target };
    await settleMail({ runtime: this.#runtime, store }, mail, carriage, [finish]);
    if (!carriage.ok) return;
    this.#begun.set(item.lane, true);
    if (message.msg_type !== "response") this.#parts.onAccepted(key, item.target);
  }

  #carriage(
    swarm: string,
    outcome: FinalOutcome["outcome"],
    reason: string | undefined,
    note: unknown,
  ): DeliveryResult {
    if (outcome !== "delivered") return { ok: false, reason: reason ?? outcome };
    const runner = runnerIn(note, swarm) ?? `swarm:${this.#parts.local()}@${swarm}`;
    return { ok: true, contributors: [runner] };
  }
}

/** Mail of one task to one swarm arrives in the order of sending. */
function laneOf({ task, swarm }: OutgoingMail): string {
  return `${task.key}/${swarm}`;
}

/**
 * Other implementations end a task only when an agent that can complete tasks receives the notice, and do not know
 * agent `all`: address their entrypoint by its name (REF-13).
 */
function forOtherImplementations(
  { message, instance }: OutboxPayload,
  { entrypoint, name }: KnownSwarm,
): MAILMessage {
  if (entrypoint === null) return message;
  const theirs = createAgentAddress(formatAgentAddress(entrypoint, name));
  const allAgents = formatAgentAddress(MAIL_ALL_LOCAL_AGENTS, name);
  const isToAll = recipientsOf(message).some(({ address }) => address === allAgents);
  switch (message.msg_type) {
    case "request":
      return isToAll ? { ...message, message: { ...message.message, recipient: theirs } } : message;
    case "response": {
      const isOurs = isEndingNotice(message) && instance.role !== "swarm";
      return isToAll || isOurs ? { ...message, message: { ...message.message, recipient: theirs } } : message;
    }
    case "broadcast":
      return isToAll ? { ...message, message: { ...message.message, recipients: [theirs] } } : message;
    case "interrupt":
      return isToAll ? { ...message, message: { ...message.message, recipients: [theirs] } } : message;
    case "broadcast_complete":
      return message;
  }
}

/** A *back* names an instance of the receiving swarm, and a *forward* names none (REF-14). */
function contributorsFor(
  way: Direction,
  contributors: readonly string[],
  swarm: string,
  local: string,
): readonly string[] {
  const others = contributors.filter((text) => contributorSwarm(text) !== swarm);
  if (way === "forward") return others;
  return others.length < contributors.length ? contributors : [...contributors, `swarm:${local}@${swarm}`];
}

/** Returns the remote instance, if it belongs to that swarm. */
function runnerIn(note: unknown, swarm: string): string | undefined {
  const { localRunner }: DeliveryNote = typeof note === "object" && note !== null ? note : {};
  return localRunner !== undefined && contributorSwarm(localRunner) === swarm ? localRunner : undefined;
}

function contributorSwarm(contributor: string): string | undefined {
  return checkTaskContributor(contributor) === undefined
    ? parseTaskContributor(contributor).swarm
    : undefined;
}

function missingTokenReason(
  swarm: string,
  state: { kind: "unset"; variable: string } | { kind: "none" },
): string {
  return state.kind === "none"
    ? `swarm '${swarm}' was registered without a token`
    : `swarm '${swarm}' needs a token: the environment variable ${state.variable} is not set`;
}
