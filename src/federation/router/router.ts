/**
 * The way to other swarms: one for the whole server. A message is durable in the outbox together with the entry that
 * sent it, and ends in exactly one of two ways: accepted over there, or its sender is told what failed.
 */
import { performance } from "node:perf_hooks";
import { LRUCache } from "lru-cache";
import type { Carriage, Carrier, OutgoingMail } from "../../engine/carrier.js";
import { isEndingNotice } from "../../engine/deciding/interswarm.js";
import type { Clock, Ids, RowWrite } from "../../engine/ports.js";
import { type Runtime, settleMail } from "../../engine/runtime/index.js";
import { createAgentAddress, formatAgentAddress } from "../../mail/address.js";
import type { MAILMessage } from "../../mail/message.js";
import { checkTaskContributor, formatTaskContributor, parseTaskContributor } from "../../mail/owner.js";
import { Circuits, type Guard, type HttpClient, type Random } from "../../net/index.js";
import {
  type Attempt,
  type AttemptResult,
  Dispatcher,
  enqueue,
  type Final,
  type OutboxFinish,
  purgeFinished,
  type StoredItem,
} from "../../outbox/index.js";
import type { FederationStore, LinkPut } from "../ports.js";
import type { SwarmEntry } from "../registry/entry.js";
import type { SwarmRegistry } from "../registry/registry.js";
import type { FederationSettings } from "../settings.js";
import { buildWrapper } from "../wrapper/build.js";
import type { SigningKey } from "../wrapper/signature.js";
import { type Parcel, parcelName, parcelOf, readParcel, writeParcel } from "./parcel.js";
import {
  type DeliveryNote,
  type Direction,
  deliveryUnknown,
  judgeAnswer,
  judgeFailure,
  type Verdict,
} from "./verdict.js";

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
  readonly report: (problem: { code: string; message: string; cause: unknown }) => void;
}

const LARGEST_ANSWER = 256 * 1024;
const MOST_LANES = 10_000;
/** How long a finished delivery is known by its name, for a task that asks again after a crash. */
const KEEP_FINISHED = 24 * 60 * 60 * 1000;

export class Router implements Carrier {
  readonly #parts: RouterParts;
  readonly #dispatcher: Dispatcher;
  /** Lanes in which something was delivered: the task is known over there. */
  readonly #begun = new LRUCache<string, true>({ max: MOST_LANES });
  readonly #since: number;
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
        timeLimit: 2 * settings.attemptTime + 5_000,
        backoff: { base: 250, factor: 2, cap: 30_000, jitter: 0.5 },
        // Short pauses: a swarm that is back gets its mail soon.
        circuits: new Circuits({ pause: { base: 500, factor: 2, cap: 5_000, jitter: 0.2 }, random }),
        // Whoever forgets ids must not be sent a message again that a crash may have cut off (decisions E5).
        journalAttempts: ({ target }) => !this.#dedupes(target),
      },
    );
  }

  /** Begins to deliver, once there is a runtime to tell. */
  start(runtime: Runtime): void {
    this.#runtime = runtime;
    this.#dispatcher.wake();
  }

  async stop(): Promise<void> {
    await this.#dispatcher.stop();
  }

  /** The swarm was seen alive again: what waits for it goes now. */
  retryNow(swarm: string): void {
    this.#dispatcher.retryNow(swarm);
  }

  /** The row that forgets deliveries which nobody will ask about any more. */
  purge(): RowWrite {
    return purgeFinished(QUEUE, this.#parts.clock.now() - KEEP_FINISHED);
  }

  owns(swarm: string): boolean {
    return this.#parts.registry.has(swarm);
  }

  rows(mail: OutgoingMail): readonly RowWrite[] | Carriage {
    const reason = this.#whyNot(mail);
    if (reason !== undefined) return { ok: false, reason };
    this.#dispatcher.backlog.add(mail.swarm);
    const link: LinkPut = {
      kind: "federation.link.put",
      taskId: mail.task.id,
      link: { peer: mail.swarm, key: mail.task.key },
    };
    return [this.#item(mail), link];
  }

  /** What waits before there is a runtime to tell is taken up by `start`. */
  wake(mails: readonly OutgoingMail[]): void {
    if (this.#runtime !== undefined) this.#dispatcher.wake(mails.map(laneOf));
  }

  async find(mail: OutgoingMail): Promise<Carriage | "waiting" | undefined> {
    const item = await this.#parts.store.outbox.byDedupeKey(QUEUE, parcelName(mail));
    if (item === undefined) return undefined;
    return item.outcome === undefined
      ? "waiting"
      : this.#carriage(item.target, item.outcome, item.reason, undefined);
  }

  /** Inactive swarms are skipped, and the sender hears of it; answers wait until the swarm is back. */
  #whyNot({ swarm, message }: OutgoingMail): string | undefined {
    const entry = this.#parts.registry.get(swarm);
    if (entry === undefined) return `no swarm named '${swarm}' is registered here`;
    const { maxWaiting } = this.#parts.settings;
    if (this.#dispatcher.backlog.isFull(swarm, maxWaiting)) {
      return `${maxWaiting} messages already wait for swarm '${swarm}'`;
    }
    if (entry.isActive || message.msg_type === "response") return undefined;
    const seen =
      entry.lastSeen === null ? "it was never seen" : `last seen ${new Date(entry.lastSeen).toISOString()}`;
    return `swarm '${swarm}' is inactive (${seen}); it is checked regularly, try again later`;
  }

  #item(mail: OutgoingMail): RowWrite {
    const { clock, ids, settings } = this.#parts;
    const now = clock.now();
    const patience = mail.message.msg_type === "response" ? settings.answerTime : settings.deliveryTime;
    // From when it was written: a task that nobody looked at for months must not send what is long forgotten.
    const sentAt = Math.min(Date.parse(mail.message.timestamp), now);
    return enqueue({
      queue: QUEUE,
      id: ids.ordered(),
      lane: laneOf(mail),
      target: mail.swarm,
      payload: writeParcel(parcelOf(mail)),
      createdAt: now,
      dueAt: now,
      deadlineAt: sentAt + patience,
      dedupeKey: parcelName(mail),
    });
  }

  #dedupes(swarm: string): boolean {
    return this.#parts.registry.get(swarm)?.capabilities.includes("dedupe") === true;
  }

  async #attempt(attempt: Attempt): Promise<AttemptResult> {
    const { item } = attempt;
    const { registry } = this.#parts;
    const swarm = item.target;
    if (!registry.has(swarm)) return { kind: "refused", reason: `swarm '${swarm}' was unregistered` };
    const token = registry.tokenOf(swarm);
    if (token.kind !== "ready") return { kind: "refused", reason: withoutToken(swarm, token) };
    const parcel = readParcel(item.payload);
    const contributors = await this.#contributorsOf(parcel).catch(() => undefined);
    // Nothing was sent, so nothing is uncertain.
    if (contributors === undefined)
      return { kind: "retry", reason: "the task could not be read", answered: true };
    const direction: Direction = contributors.some((text) => swarmOf(text) === swarm) ? "back" : "forward";
    const dedupes = this.#dedupes(swarm);
    if (!dedupes && attempt.interrupted && direction === "back") {
      // It has written to us since we offered it the task: so it has it.
      if (this.#beganTask(item, parcel)) return { kind: "delivered" };
      return deliveryUnknown(item.reason ?? "this server stopped while it was being sent");
    }
    const facts = { dedupes, uncertain: attempt.interrupted };
    const send = (way: Direction) =>
      this.#post(swarm, token.token, way, { parcel, contributors }, facts, attempt.signal);
    const verdict = await send(direction);
    if (verdict.kind !== "send_back") return verdict;
    const second = await send("back");
    return second.kind === "send_back" ? { kind: "refused", reason: "it refuses the task" } : second;
  }

  /** Whether this message was the first of its task to the swarm, as far as this process can tell. */
  #beganTask(item: StoredItem, { contributors }: Parcel): boolean {
    const unknownThen = !contributors.some((text) => swarmOf(text) === item.target);
    return unknownThen && item.createdAt >= this.#since && !this.#begun.has(item.lane);
  }

  async #post(
    swarm: string,
    token: string,
    direction: Direction,
    content: { readonly parcel: Parcel; readonly contributors: readonly string[] },
    facts: { readonly dedupes: boolean; readonly uncertain: boolean },
    signal: AbortSignal,
  ): Promise<Verdict> {
    const { registry, client, clock, guard, settings, signingKey } = this.#parts;
    const entry = registry.get(swarm);
    if (entry === undefined) return { kind: "refused", reason: `swarm '${swarm}' was unregistered` };
    const { owner, hops } = content.parcel;
    const { contributors } = content;
    const message = facts.dedupes ? content.parcel.message : forTheirEntrypoint(content.parcel, entry);
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
        timeLimit: settings.attemptTime,
        maxBytes: LARGEST_ANSWER,
        guard,
        signal,
      });
      const latency = (performance.now() - began) / 1000;
      if (!entry.isActive) {
        await registry.seen(swarm, { at: clock.now(), latency }).catch((cause: unknown) => {
          // What the swarm answered counts all the same.
          this.#parts.report({ code: "registry", message: `that '${swarm}' is back was not noted`, cause });
        });
      }
      const retryAfter = answer.headers["retry-after"];
      const { status } = answer;
      return judgeAnswer(
        { status, body: answer.text(), ...(retryAfter !== undefined && { retryAfter }) },
        { ...facts, direction },
        clock.now(),
      );
    } catch (error) {
      return judgeFailure(error, { ...facts, direction });
    }
  }

  /** Everybody who is known to contribute by now, this instance included. */
  async #contributorsOf(parcel: Parcel): Promise<readonly string[]> {
    const known =
      (await this.#runtime?.read(parcel.key, (state) => [...state.contributors])) ?? parcel.contributors;
    const own = formatTaskContributor({ ...parcel.instance, swarm: this.#parts.local() });
    return known.includes(own) ? known : [...known, own];
  }

  async #settle(item: StoredItem, final: Final, finish: OutboxFinish): Promise<void> {
    const { store } = this.#parts;
    const { key, message } = readParcel(item.payload);
    const carriage = this.#carriage(item.target, final.outcome, final.reason, final.note);
    if (this.#runtime === undefined) throw new Error("federation has not been started");
    const mail = { key, messageId: message.id, swarm: item.target };
    await settleMail({ runtime: this.#runtime, store }, mail, carriage, [finish]);
    if (carriage.ok) this.#begun.set(item.lane, true);
  }

  #carriage(swarm: string, outcome: Final["outcome"], reason: string | undefined, note: unknown): Carriage {
    if (outcome !== "delivered") return { ok: false, reason: reason ?? outcome };
    const runner = runnerIn(note, swarm) ?? `swarm:${this.#parts.local()}@${swarm}`;
    return { ok: true, contributors: [runner] };
  }
}

/** Mail of one task to one swarm arrives in the order in which it was sent. */
function laneOf({ task, swarm }: OutgoingMail): string {
  return `${task.key}/${swarm}`;
}

/**
 * Other implementations end a task only when an agent of theirs that may do so is told that it is over: their entrypoint,
 * by the name that it has there (mail.md 7.6).
 */
function forTheirEntrypoint({ message, instance }: Parcel, { entrypoint, name }: SwarmEntry): MAILMessage {
  if (message.msg_type !== "response" || !isEndingNotice(message)) return message;
  if (instance.role === "swarm" || entrypoint === null) return message;
  const recipient = createAgentAddress(formatAgentAddress(entrypoint, name));
  return { ...message, message: { ...message.message, recipient } };
}

/** The instance over there, if it names itself as one of that swarm. */
function runnerIn(note: unknown, swarm: string): string | undefined {
  const { localRunner }: DeliveryNote = typeof note === "object" && note !== null ? note : {};
  return localRunner !== undefined && swarmOf(localRunner) === swarm ? localRunner : undefined;
}

function swarmOf(contributor: string): string | undefined {
  return checkTaskContributor(contributor) === undefined
    ? parseTaskContributor(contributor).swarm
    : undefined;
}

function withoutToken(swarm: string, state: { kind: "unset"; variable: string } | { kind: "none" }): string {
  return state.kind === "none"
    ? `swarm '${swarm}' was registered without a token`
    : `swarm '${swarm}' needs a token: the environment variable ${state.variable} is not set`;
}
