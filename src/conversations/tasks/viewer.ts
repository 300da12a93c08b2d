/**
 * Who sees the conversation of a task: its owner, and admins, each of them all of it (decisions F3, F4). Members that
 * are agents do not: they see what they are sent. The right to watch that clients have in development is not enough.
 */
import type { InstanceId } from "../../engine/ports.js";
import { permissionsFor } from "../domain/roles.js";
import type { Caller } from "../domain/types.js";
import type { Viewer } from "../domain/visibility.js";

export function ownsTask({ person }: Caller, { role, id }: InstanceId): boolean {
  return person !== undefined && person.role === role && person.id === id;
}

export function maySeeTask(caller: Caller, instance: InstanceId): boolean {
  return ownsTask(caller, instance) || caller.person?.role === "admin";
}

const EVERYTHING = permissionsFor("initiator");

export function viewerOfTask(caller: Caller, instance: InstanceId): Viewer {
  if (!maySeeTask(caller, instance)) return { kind: "stranger" };
  const stint = { joined: 1, joinedAt: 0, role: "initiator", permissions: EVERYTHING } as const;
  return {
    kind: "member",
    memberships: [{ id: caller.acting, stint }],
    identities: caller.identities,
  };
}
