/**
 * Collects the entries of one decision. Each entry is applied to the state immediately, so that later parts of the same
 * decision see the earlier ones.
 */

import type { MAILAddress, MAILMessage } from "../../../mail/index.js";
import {
  buildSystemBroadcast,
  buildSystemComplete,
  buildSystemResponse,
  createAgentAddress,
  FAILED_AGENT,
  MOST_CONTRIBUTORS,
  normalizeAddress,
  parseAgentAddress,
  UNDELIVERED_ANSWER,
} from "../../../mail/index.js";
import type { DecisionContext } from "../commands.js";
import type { Entry, Sent } from "../entries.js";
import { evolve } from "../evolve.js";
import type { AgentRules, SwarmRules } from "../rules.js";
import type { TaskState } from "../state.js";
import type { SystemText } from "../system-messages.js";

/** A reason to fail the task that was found while deciding something else. */
export interface TaskFailureReason {
  readonly code: string;
  readonly reason: string;
}

export class DecisionBuilder {
  readonly state: TaskState;
  readonly rules: SwarmRules;
  readonly entries: Entry[];
  readonly at: number;
  trouble: TaskFailureReason | undefined;
  readonly #moment: DecisionContext;

  constructor(state: TaskState, rules: SwarmRules, moment: DecisionContext, entries: Entry[] = []) {
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

  /** Sends a message to mailboxes and other swarms, and checks for repetition. */
  send(message: MAILMessage, routes: Routes, extra?: Pick<Sent, "call" | "manual">): void {
    // Assigned rather than spread, because this object is created most often and spreading is slow.
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

  /** Merges contributors that another swarm reported, up to the number that other swarms accept from us. */
  contribute(contributors: readonly string[] = []): void {
    const room = Math.max(0, MOST_CONTRIBUTORS - this.state.contributors.length);
    const added = contributors
      .filter((contributor) => !this.state.contributors.includes(contributor))
      .slice(0, room);
    if (added.length > 0) this.emit({ t: "contributed", at: this.at, contributors: added });
  }

  /**
   * MAIL: Error Handling, Runtime 1: a system response to one address, local or remote.
   * @param failed the agent that will not answer the request; the notice also says so in machine-readable form
   */
  tell(address: MAILAddress, text: SystemText, requestId?: string, failed?: string): void {
    this.#respond(address, text, requestId, failed === undefined ? undefined : { [FAILED_AGENT]: failed });
  }

  /** Notifies an agent that its answer did not reach another swarm. */
  tellUndelivered(address: MAILAddress, text: SystemText, messageId: string): void {
    this.#respond(address, text, undefined, { [UNDELIVERED_ANSWER]: messageId });
  }

  #respond(
    address: MAILAddress,
    text: SystemText,
    requestId: string | undefined,
    routingInfo: Readonly<Record<string, string>> | undefined,
  ): void {
    const message = buildSystemResponse({
      ...this.#system(text),
      recipient: address,
      ...(requestId !== undefined && { requestId }),
      ...(routingInfo !== undefined && { routingInfo }),
    });
    this.send(message, routesOf([address.address], this.rules));
  }

  /** A system broadcast to one agent: wakes it without answering a request. */
  wake(agent: string, text: SystemText, extra?: Pick<Sent, "manual">): void {
    const message = buildSystemBroadcast({
      ...this.#system(text),
      recipients: [createAgentAddress(agent)],
    });
    this.send(message, { to: [agent], remote: [] }, extra);
  }

  /** MAIL: Error Handling, Runtime 2: a system broadcast to all agents, if none can be named as the cause. */
  tellAll(text: SystemText): void {
    const message = buildSystemBroadcast(this.#system(text));
    this.send(message, { to: [...this.rules.agents.keys()], remote: [] });
  }

  /** MAIL: Error Handling, Runtime 3: the system ends the task. */
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

/** The recipients of a message: names of local agents and names of other swarms. */
export interface Routes {
  readonly to: readonly string[];
  readonly remote: readonly string[];
}

/** MAIL: Routing Semantics. Every recipient is served, even if a message names agents of several swarms. */
export function routesOf(addresses: readonly string[], rules: SwarmRules): Routes {
  const to: string[] = [];
  const remote: string[] = [];
  for (const address of addresses) {
    const { name, swarm } = parseAgentAddress(normalizeAddress(address, rules.swarm));
    const list = swarm === undefined ? to : remote;
    const entry = swarm ?? name;
    if (!list.includes(entry)) list.push(entry);
  }
  return { to, remote };
}
