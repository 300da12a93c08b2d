/** A person's words as a MAIL message to the swarm. */
import { createAgentAddress, normaliseAddress } from "../../mail/address.js";
import { buildBroadcast, buildInterrupt, buildRequest } from "../../mail/build.js";
import type { MAILAddress, MAILMessage } from "../../mail/message.js";
import { TaskId } from "../../mail/message.js";
import type { Moment } from "../commands.js";
import { routesOf } from "../deciding/draft.js";
import type { InstanceId } from "../ports.js";
import type { SwarmRules } from "../rules.js";
import { RuntimeError } from "./errors.js";

export interface PersonMessage {
  readonly body: string;
  /** Default `New Message`. */
  readonly subject?: string;
  /** Default `request`. A broadcast goes to every agent. */
  readonly type?: "request" | "broadcast" | "interrupt";
  /** The swarm's default unless it names another agent that may receive mail from people. */
  readonly entrypoint?: string;
  /** In place of an entrypoint: the agents it goes to, of this swarm (`name`) and of others (`name@swarm`). */
  readonly targets?: readonly string[];
  /** Hints that travel with the message. */
  readonly routingInfo?: Readonly<Record<string, unknown>>;
}

/** A message and where it goes. */
export interface AddressedMessage {
  readonly message: MAILMessage;
  readonly to: readonly string[];
  readonly remote: readonly string[];
  readonly entrypoint: string;
}

/** A caller's own id of a new task. @throws RuntimeError `bad_input` */
export function checkedTaskId(taskId: string): string {
  if (TaskId.safeParse(taskId).success) return taskId;
  throw new RuntimeError(
    "bad_input",
    "a task id is a string of 1 to 256 characters without control characters",
  );
}

export function messageFromPerson(
  rules: SwarmRules,
  instance: InstanceId,
  taskId: string,
  input: PersonMessage,
  moment: Moment,
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
  const addresses = [...new Set(targets.map((target) => normaliseAddress(target, rules.swarm)))];
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
      throw new RuntimeError("bad_input", "a request goes to exactly one agent");
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
  throw new RuntimeError(
    "not_entrypoint",
    `agent '${name}' ${what}; the entrypoints are: ${entrypoints.join(", ")}`,
    { details: { entrypoints } },
  );
}
