/**
 * Who sees the conversation of a task: its owner and admins, each of them all of it (decision F3, decision F4).
 * Members that are agents do not: they see the mail they receive. The right of clients to watch in development mode
 * is not enough.
 */
import type { InstanceId } from "../../engine/index.js";
import { permissionsFor } from "../rules/roles.js";
import type { Actor } from "../rules/types.js";
import type { Viewer } from "../rules/visibility.js";

export function ownsTask({ instance }: Actor, { role, id }: InstanceId): boolean {
  return instance !== undefined && instance.role === role && instance.id === id;
}

export function canSeeTask(actor: Actor, instance: InstanceId): boolean {
  return ownsTask(actor, instance) || actor.instance?.role === "admin";
}

const EVERYTHING = permissionsFor("initiator");

export function viewerOfTask(actor: Actor, instance: InstanceId): Viewer {
  if (!canSeeTask(actor, instance)) return { kind: "outsider" };
  const period = { joined: 1, joinedAt: 0, role: "initiator", permissions: EVERYTHING, own: true } as const;
  return {
    kind: "member",
    memberships: [{ id: actor.acting, period }],
    identities: actor.identities,
  };
}
