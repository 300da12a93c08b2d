/** Converts a tool call to its message. */
import {
  createAgentAddress,
  formatAgentAddress,
  isInterswarmAddress,
  normalizeAddress,
  parseAgentAddress,
} from "./address.js";
import { buildBroadcast, buildComplete, buildInterrupt, buildRequest, buildResponse } from "./build.js";
import type { AgentToolCall } from "./calls.js";
import type { MAILMessage } from "./message.js";
import { MAIL_ALL_LOCAL_AGENTS } from "./names.js";
import { type ArgumentCheck, checkToolArguments } from "./tool-arguments.js";
import { isMailToolName } from "./tool-table.js";

export interface CallContext {
  /** UUID and time of the new message. */
  readonly id: string;
  readonly timestamp: string;
  readonly taskId: string;
  readonly agent: string;
  readonly swarm: string;
  /** For a response: the answered request, if known. */
  readonly requestId?: string | undefined;
  /** For an interswarm broadcast that names no swarms. */
  readonly knownSwarms?: readonly string[];
}

/** Returns the message of a call, or undefined for actions and for tools that send nothing. */
export function convertCallToMailMessage(
  call: AgentToolCall,
  context: CallContext,
): ArgumentCheck<MAILMessage> {
  const { name } = call;
  if (!isMailToolName(name)) return { ok: false, message: `${name} is not a MAIL tool` };
  const { id, timestamp, taskId } = context;
  const common = { id, timestamp, taskId, sender: createAgentAddress(context.agent) };
  switch (name) {
    case "send_request":
    case "send_response":
    case "send_interrupt": {
      const checked = checkToolArguments(name, call.args);
      if (!checked.ok) return checked;
      const { target, subject, body } = checked.value;
      const address = normalizeAddress(target, context.swarm);
      const recipient = createAgentAddress(address);
      const remote = parseAgentAddress(address).swarm;
      if (name === "send_interrupt") {
        const crossing = remote === undefined ? {} : toSwarms([remote], context.swarm);
        const parts = { ...common, subject, body, recipients: [recipient], ...crossing };
        return { ok: true, value: buildInterrupt(parts) };
      }
      // Hot path: nearly all mail is local. Written out, because spreading `common` into the literal costs twenty times
      // as much as the rest.
      const { sender } = common;
      const requestId = name === "send_response" ? (context.requestId ?? id) : id;
      const local = { id, timestamp, taskId, sender, recipient, subject, body, requestId };
      const parts = remote === undefined ? local : { ...local, ...toSwarm(remote, context.swarm) };
      return { ok: true, value: name === "send_request" ? buildRequest(parts) : buildResponse(parts) };
    }
    case "send_broadcast": {
      const checked = checkToolArguments(name, call.args);
      if (!checked.ok) return checked;
      const { subject, body, targets } = checked.value;
      if (targets === undefined) return { ok: true, value: buildBroadcast({ ...common, subject, body }) };
      const addresses = [...new Set(targets.map((target) => normalizeAddress(target, context.swarm)))];
      const remote = swarmsBeyond(addresses, context.swarm);
      const crossing = remote.length === 0 ? {} : toSwarms(remote, context.swarm);
      const recipients = addresses.map(createAgentAddress);
      return { ok: true, value: buildBroadcast({ ...common, subject, body, recipients, ...crossing }) };
    }
    case "send_interswarm_broadcast": {
      const checked = checkToolArguments(name, call.args);
      if (!checked.ok) return checked;
      const { subject, body, target_swarms } = checked.value;
      const named = target_swarms.length > 0 ? target_swarms : (context.knownSwarms ?? []);
      const swarms = [...new Set(named)].filter((swarm) => swarm !== context.swarm);
      if (swarms.length === 0) {
        return { ok: false, message: `${name}: target_swarms names no other swarm and none is known here` };
      }
      const recipients = swarms.map((swarm) =>
        createAgentAddress(formatAgentAddress(MAIL_ALL_LOCAL_AGENTS, swarm)),
      );
      const value = buildBroadcast({
        ...common,
        subject,
        body,
        recipients,
        ...toSwarms(swarms, context.swarm),
      });
      return { ok: true, value };
    }
    case "task_complete": {
      const checked = checkToolArguments(name, call.args);
      if (!checked.ok) return checked;
      const value = buildComplete({
        ...common,
        swarm: context.swarm,
        finishMessage: checked.value.finish_message,
      });
      return { ok: true, value };
    }
    case "acknowledge_broadcast":
    case "ignore_broadcast":
    case "await_message":
    case "help":
    case "discover_swarms":
      return { ok: false, message: `${name} sends no message` };
  }
}

function swarmsBeyond(addresses: readonly string[], localSwarm: string): string[] {
  const swarms = new Set<string>();
  for (const address of addresses) {
    const { swarm } = parseAgentAddress(address);
    if (swarm !== undefined && isInterswarmAddress(address, localSwarm)) swarms.add(swarm);
  }
  return [...swarms];
}

function toSwarm(remote: string, local: string) {
  return { senderSwarm: local, recipientSwarm: remote, routingInfo: { remote_swarm: remote } };
}

function toSwarms(remote: readonly string[], local: string) {
  const only = remote.length === 1 ? { routingInfo: { remote_swarm: remote[0] } } : {};
  return { senderSwarm: local, recipientSwarms: remote, ...only };
}
