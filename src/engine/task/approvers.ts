/**
 * Who may answer for a task: its owner, the principals and roles that were named as approvers, and admins where a setting
 * lets them act for owners. One rule for breakpoints and for every other question to a person.
 */
import type { TaskState } from "./state.js";

/** An authenticated principal that acts on a task. */
export interface Actor {
  readonly role: "user" | "admin";
  readonly id: string;
  /** An admin that the settings allow to act for owners. */
  readonly actsForOwners?: boolean;
}

/** Why an actor may answer. */
export type AnswerRight = "owner" | "approver" | "admin";

/** Approvers of one task. */
export const MOST_APPROVERS = 32;
const LONGEST_APPROVER = 300;

export function actorName({ role, id }: Actor): string {
  return `${role}:${id}`;
}

/** What an approver list may contain to mean this actor: the actor itself, or its role. */
export function approverNames(actor: Actor): readonly string[] {
  return [actorName(actor), actor.role];
}

export function answerRight(
  { instance, approvers }: Pick<TaskState, "instance" | "approvers">,
  actor: Actor,
): AnswerRight | undefined {
  if (instance.role === actor.role && instance.id === actor.id) return "owner";
  if (approverNames(actor).some((name) => approvers?.includes(name))) return "approver";
  return mayActForOwners(actor) ? "admin" : undefined;
}

export function mayActForOwners({ role, actsForOwners }: Actor): boolean {
  return role === "admin" && actsForOwners === true;
}

/** Returns what is wrong with a list of approvers: `user:bob`, `admin:root`, or a role, `user` or `admin`. */
export function checkApprovers(approvers: readonly string[]): string | undefined {
  if (approvers.length > MOST_APPROVERS) return `at most ${MOST_APPROVERS} approvers can be named`;
  for (const approver of approvers) {
    const match = /^(?:user|admin)(?::(.+))?$/u.exec(approver);
    if (match === null || approver.length > LONGEST_APPROVER || /\p{Cc}/u.test(approver)) {
      return `'${approver.slice(0, LONGEST_APPROVER)}' names no approver; write user:<id>, admin:<id>, user or admin`;
    }
  }
  return undefined;
}
