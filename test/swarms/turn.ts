/** Builds turns for tests of agents from a short history. */
import { randomUUID } from "node:crypto";
import type { HistoryItem, ResultItem, Turn } from "../../src/engine/agent.js";
import { createSystemAddress } from "../../src/mail/address.js";
import { buildBroadcast, buildRequest, buildResponse } from "../../src/mail/build.js";
import type { AgentToolCall } from "../../src/mail/calls.js";
import type { AddressType, MAILMessage } from "../../src/mail/message.js";
import { SYSTEM_SUBJECTS } from "../../src/mail/subjects.js";

const SWARM = "test";

interface Letter {
  readonly from: string;
  readonly fromType?: AddressType;
  readonly type?: "request" | "response" | "broadcast";
  readonly subject?: string;
  readonly body?: string;
  readonly senderSwarm?: string;
}

function letter(options: Letter): MAILMessage {
  const { from, fromType = "agent", type = "request", subject = "Question", body = "Hello" } = options;
  const parts = {
    id: randomUUID(),
    timestamp: "2026-01-01T00:00:00.000Z",
    taskId: "task",
    sender: { address_type: fromType, address: from },
    subject,
    body,
    ...(options.senderSwarm === undefined ? {} : { senderSwarm: options.senderSwarm }),
  };
  const recipient = { address_type: "agent", address: "me" } as const;
  switch (type) {
    case "request":
      return buildRequest({ ...parts, recipient });
    case "response":
      return buildResponse({ ...parts, recipient, requestId: parts.id });
    case "broadcast":
      return buildBroadcast({ ...parts, recipients: [recipient] });
  }
}

/** The history of an agent: messages, calls and results. */
export class Story {
  readonly #history: HistoryItem[] = [];
  #results: ResultItem[] = [];
  #last: MAILMessage | undefined;
  #tools: string[] = ["send_request", "send_response", "await_message", "task_complete"];

  tools(...names: string[]): this {
    this.#tools = names;
    return this;
  }

  gets(options: Letter): this {
    return this.#take(letter(options));
  }

  calls(...calls: readonly Omit<AgentToolCall, "id">[]): this {
    const withIds = calls.map((call, index) => ({ id: `c${this.#history.length}-${index}`, ...call }));
    this.#history.push({ kind: "answer", number: this.#history.length + 1, calls: withIds });
    this.#results = withIds.map(({ id, name }) => this.#result(id, name, true, "SUCCESS: message sent"));
    this.#history.push(...this.#results);
    return this;
  }

  /** An action was called and has a result; the system notifies the agent. */
  acts(name: string, content: string, ok = true): this {
    const id = `c${this.#history.length}`;
    this.#history.push({ kind: "answer", number: this.#history.length + 1, calls: [{ id, name, args: {} }] });
    this.#results = [this.#result(id, name, ok, content)];
    this.#history.push(...this.#results);
    return this.#take(
      buildBroadcast({
        id: randomUUID(),
        timestamp: "2026-01-01T00:00:00.000Z",
        taskId: "task",
        sender: createSystemAddress(SWARM),
        recipients: [{ address_type: "agent", address: "me" }],
        subject: SYSTEM_SUBJECTS.actionComplete,
        body: "done",
      }),
    );
  }

  turn(changes: Partial<Turn> = {}): Turn {
    if (this.#last === undefined) throw new Error("a history needs a message");
    return {
      swarm: SWARM,
      agent: "me",
      task: { id: "task", key: "key", owner: "user:ann@test", contributors: [], entrypoint: "me" },
      instance: { role: "user", id: "ann" },
      messages: [this.#last],
      history: [...this.#history],
      results: this.#results,
      tools: this.#tools.map((name) => ({ name, description: name, parameters: {} })),
      allTools: this.#tools.map((name) => ({ name, description: name, parameters: {} })),
      toolChoice: "required",
      peers: [],
      params: {},
      attempt: 1,
      signal: new AbortController().signal,
      emitDelta: () => {},
      resetDeltas: () => {},
      reportUsage: () => {},
      beginCall: async () => {},
      ...changes,
    };
  }

  #take(message: MAILMessage): this {
    this.#history.push({ kind: "message", number: this.#history.length + 1, message });
    this.#last = message;
    return this;
  }

  #result(callId: string, name: string, ok: boolean, content: string): ResultItem {
    return { kind: "result", number: this.#history.length + 1, callId, name, ok, content };
  }
}
