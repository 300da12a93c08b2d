/** Who wrote to whom, and how agents did, in buckets of a minute. In memory only, and bounded. */
import type { Clock } from "../base/index.js";
import type { Entry, Usage } from "../engine/index.js";
import type { MAILMessage } from "../mail/index.js";
import { Quantiles } from "./quantiles.js";

const MINUTE = 60_000;
const MOST_MINUTES = 60;
/** Per minute; further ones are not counted. */
const MOST_EDGES = 2_000;
const MOST_AGENTS = 2_000;
const MOST_FAILURES = 200;
/** Characters of a failure's message. */
const MESSAGE = 300;
/** Messages to other swarms whose delivery is awaited. */
const MOST_SENT = 2_000;

interface AgentCounts {
  turns: number;
  failed: number;
  busy: number;
  input: number;
  output: number;
  cached: number;
  cost: number | undefined;
  /** Of the last turn that named one. */
  model: string | undefined;
  readonly durations: Quantiles;
}

interface EdgeCounts {
  readonly from: string;
  readonly to: string;
  readonly type: string;
  messages: number;
  failed: number;
}

/** Failures of an agent, or of the delivery to a swarm (`@name`), with the same message. */
interface FailureCounts {
  readonly agent: string | null;
  readonly message: string;
  count: number;
  /** The last one: when, and where in which task. */
  last: number;
  key: string;
  number: number;
}

interface Bucket {
  readonly at: number;
  readonly agents: Map<string, AgentCounts>;
  readonly edges: Map<string, EdgeCounts>;
  readonly failures: Map<string, FailureCounts>;
  partial: boolean;
}

type Edge = Pick<EdgeCounts, "from" | "to" | "type">;

export class Traffic {
  readonly #clock: Clock;
  #buckets: Bucket[] = [];
  /** Messages to other swarms, by id and swarm. */
  readonly #sentTo = new Map<string, Edge>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param number the entry's, in the journal `key` */
  count(entry: Entry, key: string, number: number): void {
    switch (entry.t) {
      case "sent":
        return this.#sent(entry.message, entry.to, entry.remote !== undefined);
      case "turn":
        return this.#answered(entry.agent, entry.usage);
      case "turn_failed":
        this.#failure({ agent: entry.agent, message: entry.message, last: entry.at, key, number });
        return this.#failed(entry.agent, entry.usage);
      case "action_finished":
        if (entry.ok) return;
        return this.#failure({
          agent: entry.agent,
          message: `${entry.name}: ${entry.content}`,
          last: entry.at,
          key,
          number,
        });
      case "carried":
        if (!entry.ok) {
          const message = entry.reason ?? "unknown reason";
          this.#failure({ agent: `@${entry.swarm}`, message, last: entry.at, key, number });
        }
        return this.#carried(`${entry.message}@${entry.swarm}`, entry.ok);
      case "failed":
        // The failed turn has been counted.
        if (entry.code === "agent_error") return;
        return this.#failure({ agent: null, message: entry.reason, last: entry.at, key, number });
      case "paused":
        return this.#used(entry.agent, entry.usage);
      case "usage":
        return entry.begun === true ? undefined : this.#used(entry.agent, entry.usage);
      case "completed":
        return this.#edge({ from: nameOf(entry.message.message.sender), to: "user", type: "completion" });
      default:
        return;
    }
  }

  turn(agent: string, ms: number): void {
    const counts = this.#agent(agent);
    if (counts === undefined) return;
    counts.busy += ms;
    counts.durations.add(ms);
  }

  /**
   * The last `window` milliseconds, at most an hour.
   * @param waiting messages in mailboxes now, by agent
   */
  read(window: number, waiting: ReadonlyMap<string, number>) {
    const until = this.#clock.now();
    const since = until - window;
    const agents = new Map<string, AgentCounts>();
    const edges = new Map<string, EdgeCounts>();
    const failures = new Map<string, FailureCounts>();
    let partial = false;
    for (const bucket of this.#buckets) {
      if (bucket.at + MINUTE <= since) continue;
      partial ||= bucket.partial;
      for (const [name, counts] of bucket.agents) addAgent(agents, name, counts);
      for (const [name, { messages, failed, ...edge }] of bucket.edges) {
        const known = edges.get(name);
        if (known === undefined) edges.set(name, { ...edge, messages, failed });
        else {
          known.messages += messages;
          known.failed += failed;
        }
      }
      for (const [name, failure] of bucket.failures) {
        const count = failure.count + (failures.get(name)?.count ?? 0);
        failures.set(name, { ...failure, count });
      }
    }
    for (const name of waiting.keys()) if (!agents.has(name)) agents.set(name, newCounts());
    return {
      since,
      until,
      agents: [...agents].map(([name, { durations, input, output, cached, cost, model, ...counts }]) => ({
        name,
        ...counts,
        waiting: waiting.get(name) ?? 0,
        p50: durations.at(0.5),
        p99: durations.at(0.99),
        tokens: { input, output, cached },
        cost: cost ?? null,
        model: model ?? null,
      })),
      edges: [...edges.values()],
      failures: [...failures.values()]
        .sort((a, b) => b.count - a.count || b.last - a.last)
        .slice(0, MOST_FAILURES),
      partial: partial || failures.size > MOST_FAILURES,
    };
  }

  #sent({ id, msg_type: type, message }: MAILMessage, to: readonly string[], isRemote: boolean): void {
    const { sender } = message;
    if (sender.address_type === "system") return;
    const from = nameOf(sender);
    for (const recipient of to) this.#edge({ from, to: recipient, type });
    if (!isRemote) return;
    const recipients = "recipients" in message ? message.recipients : [message.recipient];
    for (const { address } of recipients) {
      const at = address.lastIndexOf("@");
      if (at < 0) continue;
      const edge = { from, to: address, type };
      this.#edge(edge);
      this.#sentTo.set(`${id}${address.slice(at)}`, edge);
      // Some are never settled: the oldest are forgotten.
      for (const oldest of this.#sentTo.keys()) {
        if (this.#sentTo.size <= MOST_SENT) break;
        this.#sentTo.delete(oldest);
      }
    }
  }

  #carried(name: string, ok: boolean): void {
    const edge = this.#sentTo.get(name);
    this.#sentTo.delete(name);
    if (edge !== undefined && !ok) this.#edge(edge, { messages: 0, failed: 1 });
  }

  #failure(failure: Omit<FailureCounts, "count">): void {
    const { failures } = this.#bucket();
    const message = failure.message.slice(0, MESSAGE);
    const name = `${failure.agent ?? ""}\n${message}`;
    const count = (failures.get(name)?.count ?? 0) + 1;
    if (count > 1 || failures.size < MOST_FAILURES) failures.set(name, { ...failure, message, count });
    else this.#bucket().partial = true;
  }

  #answered(name: string, usage: Usage | undefined): void {
    const counts = this.#agent(name);
    if (counts === undefined) return;
    counts.turns++;
    this.#used(name, usage);
  }

  #used(name: string, usage: Usage | undefined): void {
    const counts = usage === undefined ? undefined : this.#agent(name);
    if (usage === undefined || counts === undefined) return;
    counts.input += usage.inputTokens ?? 0;
    counts.output += usage.outputTokens ?? 0;
    counts.cached += usage.cachedInputTokens ?? 0;
    counts.model = usage.model ?? counts.model;
    if (usage.cost !== undefined) counts.cost = (counts.cost ?? 0) + usage.cost;
  }

  #failed(name: string, usage: Usage | undefined): void {
    const counts = this.#agent(name);
    if (counts === undefined) return;
    counts.turns++;
    counts.failed++;
    this.#used(name, usage);
  }

  #edge({ from, to, type }: Edge, { messages, failed } = { messages: 1, failed: 0 }): void {
    const bucket = this.#bucket();
    const name = `${from}\n${to}\n${type}`;
    const known = bucket.edges.get(name);
    if (known !== undefined) {
      known.messages += messages;
      known.failed += failed;
    } else if (bucket.edges.size < MOST_EDGES) bucket.edges.set(name, { from, to, type, messages, failed });
    else bucket.partial = true;
  }

  #agent(name: string): AgentCounts | undefined {
    const bucket = this.#bucket();
    const known = bucket.agents.get(name);
    if (known !== undefined) return known;
    if (bucket.agents.size >= MOST_AGENTS) {
      bucket.partial = true;
      return undefined;
    }
    const counts = newCounts();
    bucket.agents.set(name, counts);
    return counts;
  }

  #bucket(): Bucket {
    const at = Math.floor(this.#clock.now() / MINUTE) * MINUTE;
    const newest = this.#buckets.at(-1);
    if (newest?.at === at) return newest;
    const bucket: Bucket = { at, agents: new Map(), edges: new Map(), failures: new Map(), partial: false };
    this.#buckets = [...this.#buckets.slice(-(MOST_MINUTES - 1)), bucket];
    return bucket;
  }
}

function newCounts(): AgentCounts {
  return {
    turns: 0,
    failed: 0,
    busy: 0,
    input: 0,
    output: 0,
    cached: 0,
    cost: undefined,
    model: undefined,
    durations: new Quantiles(),
  };
}

function addAgent(agents: Map<string, AgentCounts>, name: string, counts: AgentCounts): void {
  const sum = agents.get(name) ?? newCounts();
  agents.set(name, sum);
  for (const field of ["turns", "failed", "busy", "input", "output", "cached"] as const)
    sum[field] += counts[field];
  sum.model = counts.model ?? sum.model;
  if (counts.cost !== undefined) sum.cost = (sum.cost ?? 0) + counts.cost;
  sum.durations.merge(counts.durations);
}

/** People by their role: who they are is not a matter of traffic. */
function nameOf({ address_type, address }: MAILMessage["message"]["sender"]): string {
  return address_type === "agent" ? address : address_type;
}
