/**
 * Receives mail from other swarms: decides which task a peer may write to and delivers each message once. A peer
 * cannot read or write a task just by knowing its id.
 */

import type { Clock } from "../../base/index.js";
import { MailroomError, ownValue, RateLimiter, retryAfterSeconds } from "../../base/index.js";
import type { InstanceId, JournalLocation, Runtime, TaskState } from "../../engine/index.js";
import type { JournalKey, RowWrite } from "../../journal/index.js";
import type { MAILAddress, MAILInterswarmMessage, MAILMessageOf } from "../../mail/index.js";
import {
  createAgentAddress,
  formatTaskContributor,
  MOST_CONTRIBUTORS,
  parseAgentAddress,
  parseTaskContributor,
} from "../../mail/index.js";
import type { FederationReads, LinkPut, ReceivedPut } from "../ports.js";
import type { FederationSettings } from "../settings.js";
import { exportedName } from "../wrapper/build.js";
import { checkSignature, type SignedWrapper } from "../wrapper/signature.js";
import { expandNames, type ValidMessage, validate } from "./validate.js";

const MINUTE = 60_000;

/** The response to `/interswarm/forward` and `/interswarm/back`. */
export interface Receipt {
  readonly swarm: string;
  readonly task_id: string;
  readonly status: "success";
  /** `role:id@swarm` of the instance that received the message. */
  readonly local_runner: string;
}

/** An accepted message; `at` is its journal location if this call delivered it. */
export interface Delivery {
  readonly receipt: Receipt;
  readonly at: JournalLocation | undefined;
}

interface Delivered {
  readonly runner: string;
  readonly at?: JournalLocation;
}

export interface InboundParts {
  readonly reads: FederationReads;
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly settings: Pick<FederationSettings, "identities" | "maxHops" | "signatures" | "requestsPerMinute">;
  /** The key pinned at registration. */
  readonly keyOf: (swarm: string) => string | null;
  /** Whether a swarm is registered here. */
  readonly isKnown: (swarm: string) => boolean;
  /** Whether a swarm notifies every contributor when a task ends. Others notify only those that they wrote to. */
  readonly tellsContributors: (swarm: string) => boolean;
}

/** How a task relates to the peer and its message. */
interface TaskRelation {
  readonly key: JournalKey;
  readonly instance: InstanceId;
  readonly owner: string;
  readonly running: boolean;
  readonly entrypoint: string;
  /** The task asked the peer, or the peer contributes to it. */
  readonly takesPart: boolean;
  /** A local agent wrote to the peer in this task. */
  readonly addressed: boolean;
  /** The message answers an open request of this task. */
  readonly awaited: boolean;
  /** The agent or user whose request to the peer is still open. */
  readonly asker: string | undefined;
  /** A local agent has received mail in this task. */
  readonly worked: boolean;
}

export class Inbound {
  readonly #parts: InboundParts;
  readonly #inProgress = new Map<string, Promise<Delivery>>();
  readonly #rates: RateLimiter;

  constructor(parts: InboundParts) {
    this.#parts = parts;
    this.#rates = new RateLimiter({ limit: parts.settings.requestsPerMinute, window: MINUTE }, parts.clock);
  }

  /** @throws MailroomError `too_many_requests` */
  #checkRate(peer: string): void {
    const { allowed, limit, resetAt } = this.#rates.take(peer);
    if (allowed) return;
    throw new MailroomError("too_many_requests", `swarm '${peer}' exceeded ${limit} messages per minute`, {
      details: { retry_after: retryAfterSeconds(resetAt - this.#parts.clock.now()) },
    });
  }

  /** Returns the swarm of an authenticated caller with role `agent` (decision E1). */
  peerOf(callerId: string): string {
    return ownValue(this.#parts.settings.identities, callerId) ?? callerId;
  }

  /**
   * Resolves when the message is durable. A duplicate gets the same receipt and has no effect.
   * @param signed the wrapper as it was sent, whose signature is checked: it may have fields that are unknown here
   * @throws MailroomError
   */
  async receive(
    callerId: string,
    wrapper: MAILInterswarmMessage,
    signed: SignedWrapper = wrapper,
  ): Promise<Delivery> {
    const peer = this.peerOf(callerId);
    this.#checkRate(peer);
    const name = `${peer}\n${wrapper.message_id}`;
    const inProgress = this.#inProgress.get(name);
    if (inProgress !== undefined) return inProgress;
    const work = this.#receiveOnce(peer, wrapper, signed).finally(() => this.#inProgress.delete(name));
    this.#inProgress.set(name, work);
    return work;
  }

  async #receiveOnce(peer: string, wrapper: MAILInterswarmMessage, signed: SignedWrapper): Promise<Delivery> {
    const { settings, keyOf, reads } = this.#parts;
    const incoming = validate(wrapper, { peer, local: this.#local, maxHops: settings.maxHops });
    const result = checkSignature(signed, keyOf(peer), settings.signatures);
    if (!result.ok) {
      throw new MailroomError("bad_signature", `signature rejected: ${result.reason}`, {
        details: { reason: result.reason },
      });
    }
    const before = await reads.received(peer, wrapper.message_id);
    if (before !== undefined) {
      return { receipt: this.#receipt(before.taskId, before.runner), at: undefined };
    }
    const { runner, at } = await this.#deliver(incoming, wrapper.message_id);
    return { receipt: this.#receipt(incoming.taskId, runner), at };
  }

  get #local(): string {
    return this.#parts.runtime.rules.swarm;
  }

  #receipt(taskId: string, runner: string): Receipt {
    return { swarm: this.#local, task_id: taskId, status: "success", local_runner: runner };
  }

  #runner({ role, id }: InstanceId): string {
    return formatTaskContributor({ role, id, swarm: this.#local });
  }

  /** Returns the instance that received the message. */
  async #deliver(incoming: ValidMessage, messageId: string): Promise<Delivered> {
    if (incoming.owner.swarm === this.#local) return this.#deliverToOwn(incoming, messageId);
    const tasks = await this.#foreignTasks(incoming);
    const { peer, ending } = incoming;
    const mine: InstanceId = { role: "swarm", id: peer };
    if (ending !== undefined && peer === incoming.owner.swarm)
      return this.#conclude(incoming, tasks, messageId);
    const asked =
      tasks.find(({ awaited }) => awaited) ??
      tasks.find(({ instance }) => instance.id === peer) ??
      tasks.find(({ addressed }) => addressed);
    if (ending !== undefined) {
      if (asked === undefined) return { runner: this.#runner(mine) };
      // An ending from the swarm that asked us concludes our part; from a swarm that we asked it is an answer.
      if (asked.instance.id === peer && !asked.awaited) return this.#conclude(incoming, [asked], messageId);
      return this.#notifyAsker(incoming, asked, messageId);
    }
    const instance = asked?.instance ?? mine;
    if (asked === undefined && !isInvolved(incoming)) throw unknownTask(incoming.taskId);
    const to = expandNames(incoming.names, this.#agents());
    const runner = this.#runner(instance);
    const at = await this.#parts.runtime.receive({
      instance,
      taskId: incoming.taskId,
      owner: incoming.ownerText,
      contributors: [...this.#trustedContributors(incoming).slice(0, MOST_CONTRIBUTORS - 1), runner],
      message: incoming.message,
      to,
      adopts: true,
      resumes: true,
      rows: ({ key }) => [...this.#rows(incoming, messageId, runner), linkOf(incoming, key)],
    });
    return { runner, at };
  }

  /** Delivers to a task of a local user. Allowed for swarms that the task asked and for its contributors. */
  async #deliverToOwn(incoming: ValidMessage, messageId: string): Promise<Delivered> {
    const { runtime } = this.#parts;
    const { role, id } = incoming.owner;
    const instance: InstanceId = { role, id };
    // MAIL, "Instance Types": a swarm's instance owns no tasks.
    const key = role === "swarm" ? undefined : await runtime.find(instance, incoming.taskId);
    const task = key === undefined ? undefined : await this.#relation(key, incoming);
    if (task?.takesPart !== true) throw unknownTask(incoming.taskId);
    const runner = this.#runner(instance);
    if (incoming.ending !== undefined) {
      // The local task has ended: its own ending counts.
      return task.running ? this.#notifyAsker(incoming, task, messageId) : { runner };
    }
    const user = this.#userIn(incoming, instance);
    if (user !== undefined) return this.#replyToUser(incoming, user, task, messageId);
    const at = await runtime.receive({
      instance,
      taskId: incoming.taskId,
      owner: incoming.ownerText,
      contributors: this.#trustedContributors(incoming),
      message: incoming.message,
      to: expandNames(incoming.names, this.#agents()),
      adopts: false,
      resumes: false,
      rows: this.#rows(incoming, messageId, runner),
    });
    return { runner, at };
  }

  /** Delivers another swarm's finish message to the agent that asked, whatever the recipient's name (REF-13). */
  async #notifyAsker(incoming: ValidMessage, task: TaskRelation, messageId: string): Promise<Delivered> {
    const { runtime } = this.#parts;
    const agents = this.#agents();
    const runner = this.#runner(task.instance);
    const user = userOf(task.instance);
    if (user !== undefined && task.asker === `${user.address_type}:${user.address}`) {
      return this.#replyToUser(incoming, user, task, messageId);
    }
    // Only the user asked and already has the answer: record the ending without waking an agent.
    if (task.asker === undefined && !task.worked) {
      return this.#replyToUser(incoming, undefined, task, messageId);
    }
    const named = incoming.names.find((name) => agents.has(name));
    const asker = task.asker !== undefined && agents.has(task.asker) ? task.asker : undefined;
    const to = asker ?? named ?? task.entrypoint;
    if (incoming.message.msg_type !== "response") throw new Error("an ending is a response");
    const at = await runtime.receive({
      instance: task.instance,
      taskId: incoming.taskId,
      owner: incoming.ownerText,
      contributors: this.#trustedContributors(incoming),
      message: addressedTo(incoming.message, createAgentAddress(to)),
      to: [to],
      adopts: false,
      resumes: false,
      rows: this.#rows(incoming, messageId, runner),
    });
    return { runner, at };
  }

  /** Without a user, the response is only recorded. */
  async #replyToUser(
    incoming: ValidMessage,
    user: MAILAddress | undefined,
    task: TaskRelation,
    messageId: string,
  ): Promise<Delivered> {
    const runner = this.#runner(task.instance);
    if (incoming.message.msg_type !== "response") throw new Error("a user is answered with a response");
    await this.#parts.runtime.command(
      task.key,
      {
        type: "reply_to_person",
        message: user === undefined ? incoming.message : addressedTo(incoming.message, user),
        contributors: this.#trustedContributors(incoming),
      },
      this.#rows(incoming, messageId, runner),
    );
    return { runner };
  }

  /** MAIL, "Interswarm": when the owner ends the task, every contributor's part ends, and no agent is prompted. */
  async #conclude(
    incoming: ValidMessage,
    tasks: readonly TaskRelation[],
    messageId: string,
  ): Promise<Delivered> {
    const status = incoming.ending === "completed" ? "completed" : "cancelled";
    const told = this.#parts.tellsContributors(incoming.peer)
      ? incoming.contributors.map((contributor) => parseTaskContributor(contributor).swarm)
      : [];
    const { message } = incoming;
    const runner = this.#runner({ role: "swarm", id: incoming.peer });
    for (const { key } of tasks) {
      // Commit the receipt with the last task, so that a retry by the peer finishes the remaining ones.
      const rows = key === tasks.at(-1)?.key ? this.#rows(incoming, messageId, runner) : [];
      await this.#parts.runtime.command(key, { type: "conclude", message, status, told }, rows);
    }
    return { runner };
  }

  /** Returns the adopted tasks with this id and owner. The same id under another owner is another task. */
  async #foreignTasks(incoming: ValidMessage): Promise<readonly TaskRelation[]> {
    const keys = new Set((await this.#parts.reads.links(incoming.taskId)).map(({ key }) => key));
    const own = await this.#parts.runtime.find({ role: "swarm", id: incoming.peer }, incoming.taskId);
    if (own !== undefined) keys.add(own);
    const found: TaskRelation[] = [];
    for (const key of keys) {
      const task = await this.#relation(key, incoming);
      if (task !== undefined && task.owner === incoming.ownerText && task.instance.role === "swarm") {
        found.push(task);
      }
    }
    return found;
  }

  #relation(key: JournalKey, { peer, message }: ValidMessage): Promise<TaskRelation | undefined> {
    const requestId = message.msg_type === "response" ? message.message.request_id : undefined;
    return this.#parts.runtime.read(key, (state) => {
      const toPeer = state.outstanding.filter(
        ({ remote, to }) => remote && parseAgentAddress(to).swarm === peer,
      );
      return {
        key,
        instance: state.instance,
        owner: state.owner,
        running: state.status === "running",
        entrypoint: state.entrypoint,
        takesPart: takesPart(state, peer),
        addressed: state.remoteSwarms.includes(peer),
        awaited: toPeer.some((request) => request.requestId === requestId),
        asker: (toPeer.find((request) => request.requestId === requestId) ?? toPeer[0])?.from,
        worked: [...state.agents.values()].some(
          ({ mailbox, history, turn }) => mailbox.length > 0 || history.length > 0 || turn !== undefined,
        ),
      };
    });
  }

  /** Returns the task's user if the response is addressed to the name under which the user's mail was sent. */
  #userIn({ names, message }: ValidMessage, instance: InstanceId): MAILAddress | undefined {
    const [name, ...others] = names;
    if (message.msg_type !== "response" || name === undefined || others.length > 0) return undefined;
    if (this.#agents().has(name) || name !== exportedName(instance.id)) return undefined;
    return userOf(instance);
  }

  /** Drops contributors of unregistered swarms: a peer could invent any number, and they cannot be notified. */
  #trustedContributors({ peer, ownerText, contributors }: ValidMessage): readonly string[] {
    return contributors.filter((text) => {
      const { swarm } = parseTaskContributor(text);
      return text === ownerText || swarm === peer || this.#parts.isKnown(swarm);
    });
  }

  #agents(): ReadonlySet<string> {
    return new Set(this.#parts.runtime.rules.agents.keys());
  }

  #rows({ peer, taskId }: ValidMessage, messageId: string, runner: string): readonly RowWrite[] {
    const received = { peer, messageId, taskId, runner, at: this.#parts.clock.now() };
    const put: ReceivedPut = { kind: "federation.received.put", received };
    return [put];
  }
}

/** Returns whether the task asked the swarm, or the swarm works on it. */
export function takesPart(state: TaskState, swarm: string): boolean {
  if (state.remoteSwarms.includes(swarm)) return true;
  if (state.instance.role === "swarm" && state.instance.id === swarm) return true;
  return state.contributors.some((contributor) => parseTaskContributor(contributor).swarm === swarm);
}

/** Returns whether the peer claims to own the task or to work on it (decision E2). */
function isInvolved({ peer, owner, contributors }: ValidMessage): boolean {
  if (owner.swarm === peer) return true;
  return contributors.some((contributor) => parseTaskContributor(contributor).swarm === peer);
}

function userOf({ role, id }: InstanceId): MAILAddress | undefined {
  return role === "swarm" ? undefined : { address_type: role, address: id };
}

function addressedTo(message: MAILMessageOf<"response">, recipient: MAILAddress): MAILMessageOf<"response"> {
  return { ...message, message: { ...message.message, recipient } };
}

function linkOf({ peer, taskId }: ValidMessage, key: JournalKey): LinkPut {
  return { kind: "federation.link.put", taskId, link: { peer, key } };
}

/** The same message for a missing task and for one that the peer may not access. */
function unknownTask(taskId: string): MailroomError {
  return new MailroomError("unknown_task", `unknown task '${taskId}'`);
}
