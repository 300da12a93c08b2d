/** MAIL: Ownership & Contributing. An instance is written `role:id@swarm`. */
import { badMessage } from "./errors.js";

export const TASK_CONTRIBUTOR_ROLES = ["admin", "user", "swarm"] as const;
export type TaskContributorRole = (typeof TASK_CONTRIBUTOR_ROLES)[number];

/** Maximum per task. Wrappers with more are rejected. */
export const MOST_CONTRIBUTORS = 200;

/** Who takes part in a task: `role:id@swarm`. */
export interface TaskContributor {
  readonly role: TaskContributorRole;
  readonly id: string;
  readonly swarm: string;
}

/** Writes a contributor: `role:id@swarm`. */
export function formatTaskContributor({ role, id, swarm }: TaskContributor): string {
  return `${role}:${id}@${swarm}`;
}

/**
 * The role ends at the first `:`, the swarm begins after the last `@`. Ids are often e-mail addresses, so an id may
 * contain both characters. Roles and swarm names contain neither.
 * @throws MailroomError `bad_message` when the text has another form.
 */
export function parseTaskContributor(text: string): TaskContributor {
  const parsed = split(text);
  if (typeof parsed === "string") {
    throw badMessage("task contributor", [{ path: "", message: `${JSON.stringify(text)} ${parsed}` }]);
  }
  return parsed;
}

/** Returns why this text is not `role:id@swarm`, or `undefined` if it is. */
export function checkTaskContributor(text: string): string | undefined {
  const parsed = split(text);
  return typeof parsed === "string" ? parsed : undefined;
}

/** Returns the parts, or the problem. */
function split(text: string): TaskContributor | string {
  const colon = text.indexOf(":");
  if (colon < 0) return "has no role: write role:id@swarm";
  const name = text.slice(0, colon);
  const role = TASK_CONTRIBUTOR_ROLES.find((known) => known === name);
  if (role === undefined) return `must begin with one of the roles ${TASK_CONTRIBUTOR_ROLES.join(", ")}`;
  const at = text.lastIndexOf("@");
  if (at < colon) return "has no swarm: write role:id@swarm";
  const id = text.slice(colon + 1, at);
  const swarm = text.slice(at + 1);
  if (id === "") return "has an empty id: write role:id@swarm";
  if (swarm === "") return "has an empty swarm name: write role:id@swarm";
  return { role, id, swarm };
}
