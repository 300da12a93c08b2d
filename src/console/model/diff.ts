/** What changed between two states of a task, as lines to read. */
import type { AgentState, TaskState } from "../../engine/pure.js";

export interface Change {
  readonly what: string;
  readonly before: string;
  readonly after: string;
}

export function changesBetween(before: TaskState, after: TaskState): Change[] {
  const changes: Change[] = [];
  const say = (what: string, one: string, other: string) => {
    if (one !== other) changes.push({ what, before: one, after: other });
  };
  say("Status", before.status, after.status);
  say("Steps", String(before.steps), String(after.steps));
  say("Open requests", String(before.outstanding.length), String(after.outstanding.length));
  say("Mail on its way to other swarms", String(before.outbound.length), String(after.outbound.length));
  say("Contributors", before.contributors.join(", "), after.contributors.join(", "));
  for (const name of new Set([...before.agents.keys(), ...after.agents.keys()])) {
    const [one, other] = [before.agents.get(name), after.agents.get(name)];
    say(`${name}`, doing(one), doing(other));
    const mail = mailboxChange(one, other);
    if (mail !== undefined) changes.push({ what: `Mailbox of ${name}`, ...mail });
    say(`Memory of ${name}`, items(one), items(other));
  }
  return changes;
}

/** What an agent is doing, in words. */
export function doing(agent: AgentState | undefined): string {
  if (agent === undefined) return "not part of it yet";
  if (agent.open.length > 0) return "waits for a person";
  if ((agent.turn?.asked.length ?? 0) > 0) return "waits for approval";
  const running = agent.turn?.running.map(({ call }) => call.name) ?? [];
  if (running.length > 0) return `runs ${running.join(", ")}`;
  if (agent.turn !== undefined) return "works on its calls";
  if (agent.lent !== undefined) return "has a message";
  if (agent.mailbox.length > 0) return "answers";
  return "idle";
}

function items(agent: AgentState | undefined): string {
  return `${agent?.history.length ?? 0} in memory`;
}

function mailboxChange(
  one: AgentState | undefined,
  other: AgentState | undefined,
): { before: string; after: string } | undefined {
  const before = (one?.mailbox ?? []).map(({ number }) => number);
  const after = (other?.mailbox ?? []).map(({ number }) => number);
  const gone = before.filter((number) => !after.includes(number)).map((number) => `−#${number}`);
  const come = after.filter((number) => !before.includes(number)).map((number) => `+#${number}`);
  if (gone.length + come.length === 0) return undefined;
  return { before: `${before.length} waiting`, after: [...gone, ...come].join(" ") };
}
