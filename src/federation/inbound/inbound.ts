/**
 * Mail from other swarms: who may write into which task, each message once. Law: a stranger can neither read nor write
 * a task by knowing its id.
 */
import type { Clock, InstanceId, JournalKey, RowWrite } from "../../engine/ports.js";
import type { PostedAt, Runtime } from "../../engine/runtime/index.js";
import type { TaskState } from "../../engine/state.js";
import { createAgentAddress, parseAgentAddress } from "../../mail/address.js";
import type { MAILAddress, MAILInterswarmMessage, MAILMessageOf } from "../../mail/message.js";
import { formatTaskContributor, MOST_CONTRIBUTORS, parseTaskContributor } from "../../mail/owner.js";
import { ownValue } from "../../mail/record.js";
import { FederationError } from "../errors.js";
import type { FederationReads, LinkPut, ReceivedPut } from "../ports.js";
import type { FederationSettings } from "../settings.js";
import { exportedName } from "../wrapper/build.js";
import { checkSignature } from "../wrapper/signature.js";
import { type Arrival, expandNames, judge } from "./judge.js";
import { PeerRates } from "./rates.js";

/** The answer to `/interswarm/forward` and `/interswarm/back`. */
export interface Receipt {
  readonly swarm: string;
  readonly task_id: string;
  readonly status: "success";
  /** `role:id@swarm` of the instance that got the message. */
  readonly local_runner: string;
}

/** A message that was taken over, and where it stands if it was put into a task just now. */
export interface Delivery {
  readonly receipt: Receipt;
  readonly at: PostedAt | undefined;
}

interface Delivered {
  readonly runner: string;
  readonly at?: PostedAt;
}

export interface InboundParts {
  readonly reads: FederationReads;
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly settings: Pick<FederationSettings, "identities" | "maxHops" | "signatures" | "requestsPerMinute">;
  /** The key that was pinned when the swarm was registered. */
  readonly keyOf: (swarm: string) => string | null;
  /** Whether a swarm is registered here. */
  readonly isKnown: (swarm: string) => boolean;
}

/** What has to be known of a task to decide about mail for it. */
interface Standing {
  readonly key: JournalKey;
  readonly instance: InstanceId;
  readonly owner: string;
  readonly running: boolean;
  readonly ended: boolean;
  readonly entrypoint: string;
  /** Whether the peer was asked by this task or contributes to it. */
  readonly takesPart: boolean;
  /** Whether one of our agents wrote to the peer for this task. */
  readonly addressed: boolean;
  /** The message answers a request of this task. */
  readonly awaited: boolean;
  /** Who asked the peer last and waits: an agent, or the person. */
  readonly asker: string | undefined;
  /** Whether any agent of ours ever had to do with it. */
  readonly worked: boolean;
}

export class Inbound {
  readonly #parts: InboundParts;
  readonly #underWay = new Map<string, Promise<Delivery>>();
  readonly #rates: PeerRates;

  constructor(parts: InboundParts) {
    this.#parts = parts;
    this.#rates = new PeerRates(parts.settings.requestsPerMinute);
  }

  /** The swarm that an authenticated caller of role `agent` is (decisions E1). */
  peerOf(callerId: string): string {
    return ownValue(this.#parts.settings.identities, callerId) ?? callerId;
  }

  /**
   * Takes a message over, or says why not. Resolves when it is durable; a message that came before is acknowledged
   * again and has no effect.
   * @throws FederationError, RuntimeError
   */
  async receive(callerId: string, wrapper: MAILInterswarmMessage): Promise<Delivery> {
    const peer = this.peerOf(callerId);
    this.#rates.admit(peer, this.#parts.clock.now());
    const name = `${peer}\n${wrapper.message_id}`;
    const underWay = this.#underWay.get(name);
    if (underWay !== undefined) return underWay;
    const work = this.#receiveOnce(peer, wrapper).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, work);
    return work;
  }

  async #receiveOnce(peer: string, wrapper: MAILInterswarmMessage): Promise<Delivery> {
    const { settings, keyOf, reads } = this.#parts;
    const arrival = judge(wrapper, { peer, local: this.#local, maxHops: settings.maxHops });
    const verdict = checkSignature(wrapper, keyOf(peer), settings.signatures);
    if (!verdict.ok) {
      throw new FederationError("bad_signature", `the signature is not accepted: ${verdict.reason}`, {
        reason: verdict.reason,
      });
    }
    const before = await reads.received(peer, wrapper.message_id);
    if (before !== undefined) {
      return { receipt: this.#receipt(before.taskId, before.runner), at: undefined };
    }
    const { runner, at } = await this.#deliver(arrival, wrapper.message_id);
    return { receipt: this.#receipt(arrival.taskId, runner), at };
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

  /** The instance that got it. */
  async #deliver(arrival: Arrival, messageId: string): Promise<Delivered> {
    if (arrival.owner.swarm === this.#local) return this.#deliverToOwn(arrival, messageId);
    const tasks = await this.#foreignTasks(arrival);
    const { peer, ending } = arrival;
    const mine: InstanceId = { role: "swarm", id: peer };
    if (ending !== undefined && peer === arrival.owner.swarm)
      return this.#conclude(arrival, tasks, messageId);
    const asked =
      tasks.find(({ awaited }) => awaited) ??
      tasks.find(({ instance }) => instance.id === peer) ??
      tasks.find(({ addressed }) => addressed);
    if (ending !== undefined) {
      if (asked === undefined) return { runner: this.#runner(mine) };
      // Whoever asked us needs us no more; whom we asked has answered with it.
      if (asked.instance.id === peer && !asked.awaited) return this.#conclude(arrival, [asked], messageId);
      return this.#tellAsker(arrival, asked, messageId);
    }
    const instance = asked?.instance ?? mine;
    if (asked === undefined && !isInvolved(arrival)) throw unknownTask(arrival.taskId);
    const to = expandNames(arrival.names, this.#agents());
    const runner = this.#runner(instance);
    const at = await this.#parts.runtime.receive({
      instance,
      taskId: arrival.taskId,
      owner: arrival.ownerText,
      contributors: [...this.#believed(arrival).slice(0, MOST_CONTRIBUTORS - 1), runner],
      message: arrival.message,
      to,
      adopts: true,
      resumes: true,
      rows: ({ key }) => [...this.#rows(arrival, messageId, runner), linkOf(arrival, key)],
    });
    return { runner, at };
  }

  /** A task of one of our people: for swarms that they or their agents asked, and for those who were brought in. */
  async #deliverToOwn(arrival: Arrival, messageId: string): Promise<Delivered> {
    const { runtime } = this.#parts;
    const { role, id } = arrival.owner;
    const instance: InstanceId = { role, id };
    // MAIL: Instance Types. A swarm's instance owns nothing, so nobody can speak to it as an owner.
    const key = role === "swarm" ? undefined : await runtime.find(instance, arrival.taskId);
    const task = key === undefined ? undefined : await this.#standing(key, arrival);
    if (task?.takesPart !== true) throw unknownTask(arrival.taskId);
    const runner = this.#runner(instance);
    if (arrival.ending !== undefined) {
      // What ends elsewhere after we have ended is no news.
      return task.running ? this.#tellAsker(arrival, task, messageId) : { runner };
    }
    const person = this.#personIn(arrival, instance);
    if (person !== undefined) return this.#replyToPerson(arrival, person, task, messageId);
    const at = await runtime.receive({
      instance,
      taskId: arrival.taskId,
      owner: arrival.ownerText,
      contributors: this.#believed(arrival),
      message: arrival.message,
      to: expandNames(arrival.names, this.#agents()),
      adopts: false,
      resumes: false,
      rows: this.#rows(arrival, messageId, runner),
    });
    return { runner, at };
  }

  /** The finish message of another swarm goes to whoever asked it, whatever name it was addressed to (mail.md 7.6). */
  async #tellAsker(arrival: Arrival, task: Standing, messageId: string): Promise<Delivered> {
    const { runtime } = this.#parts;
    const agents = this.#agents();
    const runner = this.#runner(task.instance);
    const person = personOf(task.instance);
    if (person !== undefined && task.asker === `${person.address_type}:${person.address}`) {
      return this.#replyToPerson(arrival, person, task, messageId);
    }
    // Nobody of ours but the person asked, and has the answer: no agent would know what to do with the end of it.
    if (task.asker === undefined && !task.worked) {
      return this.#replyToPerson(arrival, undefined, task, messageId);
    }
    const named = arrival.names.find((name) => agents.has(name));
    const asker = task.asker !== undefined && agents.has(task.asker) ? task.asker : undefined;
    const to = asker ?? named ?? task.entrypoint;
    if (arrival.message.msg_type !== "response") throw new Error("an ending is a response");
    const at = await runtime.receive({
      instance: task.instance,
      taskId: arrival.taskId,
      owner: arrival.ownerText,
      contributors: this.#believed(arrival),
      message: addressedTo(arrival.message, createAgentAddress(to)),
      to: [to],
      adopts: false,
      resumes: false,
      rows: this.#rows(arrival, messageId, runner),
    });
    return { runner, at };
  }

  /** For nobody, it goes on record, and that is all. */
  async #replyToPerson(
    arrival: Arrival,
    person: MAILAddress | undefined,
    task: Standing,
    messageId: string,
  ): Promise<Delivered> {
    const runner = this.#runner(task.instance);
    if (arrival.message.msg_type !== "response") throw new Error("a person is answered with a response");
    await this.#parts.runtime.command(
      task.key,
      {
        type: "reply_to_person",
        message: person === undefined ? arrival.message : addressedTo(arrival.message, person),
        contributors: this.#believed(arrival),
      },
      this.#rows(arrival, messageId, runner),
    );
    return { runner };
  }

  /** MAIL: Interswarm. The owner is done: so is everybody who contributed, without another round of prompting. */
  async #conclude(arrival: Arrival, tasks: readonly Standing[], messageId: string): Promise<Delivered> {
    const status = arrival.ending === "completed" ? "completed" : "cancelled";
    const told = arrival.contributors.map((contributor) => parseTaskContributor(contributor).swarm);
    const { message } = arrival;
    const runner = this.#runner({ role: "swarm", id: arrival.peer });
    const open = tasks.filter(({ ended }) => !ended);
    for (const { key } of open) {
      // With the last one: until then another attempt of the peer has something left to do.
      const rows = key === open.at(-1)?.key ? this.#rows(arrival, messageId, runner) : [];
      await this.#parts.runtime.command(key, { type: "conclude", message, status, told }, rows);
    }
    return { runner };
  }

  /** Our adopted tasks of this id and owner. Another owner's task of the same id is another task. */
  async #foreignTasks(arrival: Arrival): Promise<readonly Standing[]> {
    const keys = new Set((await this.#parts.reads.links(arrival.taskId)).map(({ key }) => key));
    const own = await this.#parts.runtime.find({ role: "swarm", id: arrival.peer }, arrival.taskId);
    if (own !== undefined) keys.add(own);
    const found: Standing[] = [];
    for (const key of keys) {
      const task = await this.#standing(key, arrival);
      if (task !== undefined && task.owner === arrival.ownerText && task.instance.role === "swarm") {
        found.push(task);
      }
    }
    return found;
  }

  #standing(key: JournalKey, { peer, message }: Arrival): Promise<Standing | undefined> {
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
        ended: state.status !== "running" && state.status !== "paused",
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

  /** A response to the person whose task it is, under the name that their mail went out with. */
  #personIn({ names, message }: Arrival, instance: InstanceId): MAILAddress | undefined {
    const [name, ...others] = names;
    if (message.msg_type !== "response" || name === undefined || others.length > 0) return undefined;
    if (this.#agents().has(name) || name !== exportedName(instance.id)) return undefined;
    return personOf(instance);
  }

  /** Contributors of swarms that we do not know could be made up without end, and we can tell them nothing. */
  #believed({ peer, ownerText, contributors }: Arrival): readonly string[] {
    return contributors.filter((text) => {
      const { swarm } = parseTaskContributor(text);
      return text === ownerText || swarm === peer || this.#parts.isKnown(swarm);
    });
  }

  #agents(): ReadonlySet<string> {
    return new Set(this.#parts.runtime.rules.agents.keys());
  }

  #rows({ peer, taskId }: Arrival, messageId: string, runner: string): readonly RowWrite[] {
    const received = { peer, messageId, taskId, runner, at: this.#parts.clock.now() };
    const put: ReceivedPut = { kind: "federation.received.put", received };
    return [put];
  }
}

/** Whether a swarm was asked by this task, or is known to work on it. */
export function takesPart(state: TaskState, swarm: string): boolean {
  if (state.remoteSwarms.includes(swarm)) return true;
  if (state.instance.role === "swarm" && state.instance.id === swarm) return true;
  return state.contributors.some((contributor) => parseTaskContributor(contributor).swarm === swarm);
}

/** Whether the peer says that the task is its own or that it works on it (decisions E2). */
function isInvolved({ peer, owner, contributors }: Arrival): boolean {
  if (owner.swarm === peer) return true;
  return contributors.some((contributor) => parseTaskContributor(contributor).swarm === peer);
}

function personOf({ role, id }: InstanceId): MAILAddress | undefined {
  return role === "swarm" ? undefined : { address_type: role, address: id };
}

function addressedTo(message: MAILMessageOf<"response">, recipient: MAILAddress): MAILMessageOf<"response"> {
  return { ...message, message: { ...message.message, recipient } };
}

function linkOf({ peer, taskId }: Arrival, key: JournalKey): LinkPut {
  return { kind: "federation.link.put", taskId, link: { peer, key } };
}

/** The same words for what is not there and for what is none of the peer's business. */
function unknownTask(taskId: string): FederationError {
  return new FederationError("unknown_task", `no task '${taskId}' of yours is known here`);
}
