/** Builds a MAIL message from a user's text. */
import { MailroomError } from "../../base/index.js";
import type { MAILAddress, MAILMessage } from "../../mail/index.js";
import {
  buildBroadcast,
  buildInterrupt,
  buildRequest,
  createAgentAddress,
  normalizeAddress,
  TaskId,
} from "../../mail/index.js";
import type { InstanceId } from "../ports.js";
import type { DecisionContext } from "../task/commands.js";
import { routesOf } from "../task/decide/decision-builder.js";
import type { SwarmRules } from "../task/rules.js";

export interface UserMessage {
  readonly body: string;
  /** Default `New Message`. */
  readonly subject?: string;
  /** Default `request`. A broadcast goes to every agent. */
  readonly type?: "request" | "broadcast" | "interrupt";
  /** The entrypoint. Default: that of the swarm. */
  readonly entrypoint?: string;
  /** Instead of an entrypoint: the recipients, in this swarm (`name`) and in others (`name@swarm`). */
  readonly targets?: readonly string[];
  /** Hints that travel with the message. */
  readonly routingInfo?: Readonly<Record<string, unknown>>;
}

/** A message and its recipients. */
export interface AddressedMessage {
  readonly message: MAILMessage;
  readonly to: readonly string[];
  readonly remote: readonly string[];
  readonly entrypoint: string;
}

/** Checks a caller's id for a new task. @throws MailroomError `bad_input` */
export function checkedTaskId(taskId: string): string {
  if (TaskId.safeParse(taskId).success) return taskId;
  throw new MailroomError(
    "bad_input",
    "a task id is a string of 1 to 256 characters without control characters",
  );
}

export function messageFromUser(
  rules: SwarmRules,
  instance: InstanceId,
  taskId: string,
  input: UserMessage,
  moment: DecisionContext,
  task?: { readonly entrypoint: string },
): AddressedMessage {
  const entrypoint = input.entrypoint ?? task?.entrypoint ?? rules.entrypoint;
  if (input.entrypoint !== undefined) checkEntrypoint(rules, input.entrypoint);
  const { targets } = input;
  const common = {
    id: moment.id(),
    timestamp: moment.timestamp,
    taskId,
    sender: { address_type: instance.role === "admin" ? "admin" : "user", address: instance.id } as const,
    subject: input.subject ?? "New Message",
    body: input.body,
    senderSwarm: rules.swarm,
    ...(input.routingInfo !== undefined && { routingInfo: input.routingInfo }),
  };
  if (targets !== undefined) {
    return { ...toTargets(rules, common, input.type ?? "request", targets), entrypoint };
  }
  const remote: readonly string[] = [];
  switch (input.type ?? "request") {
    case "request": {
      const message = buildRequest({
        ...common,
        recipient: createAgentAddress(entrypoint),
        recipientSwarm: rules.swarm,
      });
      return { message, to: [entrypoint], remote, entrypoint };
    }
    case "interrupt": {
      const message = buildInterrupt({
        ...common,
        recipients: [createAgentAddress(entrypoint)],
        recipientSwarms: [rules.swarm],
      });
      return { message, to: [entrypoint], remote, entrypoint };
    }
    case "broadcast": {
      const message = buildBroadcast({ ...common, recipientSwarms: [rules.swarm] });
      return { message, to: [...rules.agents.keys()], remote, entrypoint };
    }
  }
}

interface CommonParts {
  readonly id: string;
  readonly timestamp: string;
  readonly taskId: string;
  readonly sender: MAILAddress;
  readonly subject: string;
  readonly body: string;
  readonly senderSwarm: string;
  readonly routingInfo?: Readonly<Record<string, unknown>>;
}

function toTargets(
  rules: SwarmRules,
  common: CommonParts,
  type: "request" | "broadcast" | "interrupt",
  targets: readonly string[],
): Omit<AddressedMessage, "entrypoint"> {
  const addresses = [...new Set(targets.map((target) => normalizeAddress(target, rules.swarm)))];
  const routes = routesOf(addresses, rules);
  const [first] = addresses;
  if (type === "request" && first !== undefined && addresses.length === 1) {
    const [swarm] = routes.remote;
    const recipient = createAgentAddress(first);
    const recipientSwarm = swarm ?? rules.swarm;
    return { message: buildRequest({ ...common, recipient, recipientSwarm }), ...routes };
  }
  const parts = {
    ...common,
    recipients: addresses.map(createAgentAddress),
    recipientSwarms: [...(routes.to.length > 0 ? [rules.swarm] : []), ...routes.remote],
  };
  switch (type) {
    case "request":
      throw new MailroomError("bad_input", "a request goes to exactly one agent");
    case "broadcast":
      return { message: buildBroadcast(parts), ...routes };
    case "interrupt":
      return { message: buildInterrupt(parts), ...routes };
  }
}

function checkEntrypoint(rules: SwarmRules, name: string): void {
  if (rules.agents.get(name)?.isEntrypoint === true) return;
  const entrypoints = [...rules.agents.values()]
    .filter((agent) => agent.isEntrypoint)
    .map(({ name }) => name);
  const what = rules.agents.has(name) ? "is not an entrypoint" : "does not exist";
  throw new MailroomError(
    "not_entrypoint",
    `agent '${name}' ${what}; the entrypoints are: ${entrypoints.join(", ")}`,
    { details: { entrypoints } },
  );
}
