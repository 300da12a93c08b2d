/**
 * A decision in the making. Each entry takes effect on the state the moment it is decided, so that later parts of
 * the same decision see the earlier ones; the entries are what gets committed.
 */
import { createAgentAddress, normaliseAddress, parseAgentAddress } from "../../mail/address.js";
import { buildSystemBroadcast, buildSystemComplete, buildSystemResponse } from "../../mail/build.js";
import type { MAILAddress, MAILMessage } from "../../mail/message.js";
import { MOST_CONTRIBUTORS } from "../../mail/owner.js";
import { FAILED_AGENT } from "../../mail/subjects.js";
import type { Moment } from "../commands.js";
import type { Entry, Sent } from "../entries.js";
import { evolve } from "../evolve.js";
import type { AgentRules, SwarmRules } from "../rules.js";
import type { TaskState } from "../state.js";
import type { SystemText } from "../system-messages.js";

/** A reason to end the task as failed, found while deciding something else. */
export interface Trouble {
  readonly code: string;
  readonly reason: string;
}

export class Draft {
  readonly state: TaskState;
  readonly rules: SwarmRules;
  readonly entries: Entry[];
  readonly at: number;
  trouble: Trouble | undefined;
  readonly #moment: Moment;

  constructor(state: TaskState, rules: SwarmRules, moment: Moment, entries: Entry[] = []) {
    this.state = state;
    this.rules = rules;
    this.at = moment.at;
    this.#moment = moment;
    this.entries = entries;
  }

  get timestamp(): string {
    return this.#moment.timestamp;
  }

  id(): string {
    return this.#moment.id();
  }

  emit(entry: Entry): void {
    evolve(this.state, entry);
    this.entries.push(entry);
  }

  agentRules(name: string): AgentRules | undefined {
    return this.rules.agents.get(name);
  }

  /** Puts a message into mailboxes and on the way to other swarms, and watches for repetition. */
  send(message: MAILMessage, routes: Routes, extra?: Pick<Sent, "call" | "manual">): void {
    // Filled in rather than spread together: this is the hottest object of all, and spreading is slow.
    const entry: { -readonly [K in keyof Sent]: Sent[K] } = {
      t: "sent",
      at: this.at,
      message,
      to: routes.to,
    };
    if (extra?.call !== undefined) entry.call = extra.call;
    if (extra?.manual !== undefined) entry.manual = extra.manual;
    if (routes.remote.length > 0) entry.remote = routes.remote;
    this.emit(entry);
    const { repetition } = this.rules.limits;
    if (repetition === 0 || message.message.sender.address_type !== "agent") return;
    const { recent } = this.state;
    const print = recent.at(-1);
    let times = 0;
    for (const other of recent) if (other === print) times++;
    if (times >= repetition) {
      this.trouble ??= {
        code: "repetition",
        reason:
          `agent '${message.message.sender.address}' sent the same message to ` +
          `${[...routes.to, ...routes.remote].join(", ")} ${times} times without any action in between ` +
          `(subject: '${message.message.subject}')`,
      };
    }
  }

  /** Merges contributors that another swarm made known: as many as the other swarms take from us. */
  contribute(contributors: readonly string[] = []): void {
    const room = Math.max(0, MOST_CONTRIBUTORS - this.state.contributors.length);
    const added = contributors
      .filter((contributor) => !this.state.contributors.includes(contributor))
      .slice(0, room);
    if (added.length > 0) this.emit({ t: "contributed", at: this.at, contributors: added });
  }

  /**
   * MAIL: Error Handling, Runtime 1: a system response to one address, local or remote.
   * @param failed the agent from which no answer to the request will come; the notice says so for programs too
   */
  tell(address: MAILAddress, text: SystemText, requestId?: string, failed?: string): void {
    const message = buildSystemResponse({
      ...this.#system(text),
      recipient: address,
      ...(requestId !== undefined && { requestId }),
      ...(failed !== undefined && { routingInfo: { [FAILED_AGENT]: failed } }),
    });
    this.send(message, routesOf([address.address], this.rules));
  }

  /** A system broadcast to one agent: wakes it without being an answer to anything. */
  wake(agent: string, text: SystemText, extra?: Pick<Sent, "manual">): void {
    const message = buildSystemBroadcast({
      ...this.#system(text),
      recipients: [createAgentAddress(agent)],
    });
    this.send(message, { to: [agent], remote: [] }, extra);
  }

  /** MAIL: Error Handling, Runtime 2: a system broadcast to all, where no causing agent can be named. */
  tellAll(text: SystemText): void {
    const message = buildSystemBroadcast(this.#system(text));
    this.send(message, { to: [...this.rules.agents.keys()], remote: [] });
  }

  /** MAIL: Error Handling, Runtime 3: the system's own end of the task. */
  systemComplete(text: SystemText): MAILMessage {
    return buildSystemComplete(this.#system(text));
  }

  #system(text: SystemText) {
    return {
      id: this.id(),
      timestamp: this.timestamp,
      taskId: this.state.taskId,
      swarm: this.rules.swarm,
      subject: text.subject,
      body: text.body,
    };
  }
}

/** Where a message goes: local agents by name, other swarms by theirs. */
export interface Routes {
  readonly to: readonly string[];
  readonly remote: readonly string[];
}

/** MAIL: Routing Semantics. Every recipient is served, whichever mixture of swarms a message names. */
export function routesOf(addresses: readonly string[], rules: SwarmRules): Routes {
  const to: string[] = [];
  const remote: string[] = [];
  for (const address of addresses) {
    const { name, swarm } = parseAgentAddress(normaliseAddress(address, rules.swarm));
    const list = swarm === undefined ? to : remote;
    const entry = swarm ?? name;
    if (!list.includes(entry)) list.push(entry);
  }
  return { to, remote };
}
