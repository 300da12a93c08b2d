/** The server about itself. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { z } from "zod";
import type { InstanceId, TaskIndex, TaskStatus } from "../../engine/ports.js";
import { CAPABILITIES } from "../../federation/index.js";
import { PROTOCOL_VERSION } from "../../mail/message.js";
import type { Door } from "../door.js";
import {
  ADMINS,
  type Answer,
  definePublicRoute,
  defineRoute,
  NOTHING,
  PERSONS,
  PUBLIC,
  type Route,
} from "../route.js";
import { Health, HealthRequest, Identity, ServerInfo, ServerStatus } from "../schemas/server.js";

export function serverRoutes(door: Door): Route[] {
  const { mailroom, options } = door;
  const healthAnswer = (): Answer => ({ status: 200, body: healthOf(door) });
  return [
    definePublicRoute({
      ...NOTHING,
      id: "getServer",
      method: "GET",
      path: "/",
      tag: "server",
      summary: "What this server is",
      access: PUBLIC,
      answers: { 200: { description: "Server and swarm.", schema: ServerInfo } },
      async handle() {
        const { name, version, description, entrypoint, keywords, public: isPublic } = mailroom.swarm;
        return {
          status: 200,
          body: {
            name: "mail",
            version: PROTOCOL_VERSION,
            protocol_version: PROTOCOL_VERSION,
            swarm: { name, version, description, entrypoint, keywords, public: isPublic },
            status: "running",
            uptime: (door.clock.now() - door.startedAt) / 1000,
            capabilities: options.capabilities ?? (options.federation === undefined ? [] : CAPABILITIES),
            ...(options.federation?.publicKey !== undefined && {
              public_key: options.federation.publicKey,
            }),
            server: { name: "mailroom", version: options.version },
          },
        };
      },
    }),
    definePublicRoute({
      ...NOTHING,
      id: "getHealth",
      method: "GET",
      path: "/health",
      tag: "server",
      summary: "Whether it is well",
      access: PUBLIC,
      answers: { 200: { description: "Its health.", schema: Health } },
      handle: async () => healthAnswer(),
    }),
    defineRoute({
      ...NOTHING,
      id: "setHealth",
      method: "POST",
      path: "/health",
      tag: "server",
      summary: "Say how it is",
      description: "The word is shown by `GET /health` until the next start.",
      access: ADMINS,
      body: HealthRequest,
      idempotent: true,
      answers: { 200: { description: "Its health.", schema: Health } },
      handle: (call, caller) =>
        door.writes.answer({ ...call, caller, route: "setHealth" }, async (remember) => {
          const before = door.health;
          door.health = { status: call.body.status, since: door.clock.now() };
          const answer = healthAnswer();
          const rows = remember({ kind: "answer", status: answer.status, body: answer.body });
          try {
            if (rows.length > 0) await mailroom.store.commit({ appends: [], rows });
          } catch (error) {
            door.health = before;
            throw error;
          }
          return answer;
        }),
    }),
    defineRoute({
      ...NOTHING,
      id: "getStatus",
      method: "GET",
      path: "/status",
      tag: "server",
      summary: "How the server and the caller's tasks stand",
      access: PERSONS,
      answers: { 200: { description: "The status.", schema: ServerStatus } },
      async handle(_call, caller) {
        const { tasks } = mailroom.store;
        return {
          status: 200,
          body: {
            swarm: { name: mailroom.swarm.name, status: "ready" },
            active_users: door.activeUsers,
            user_mail_ready: await hasTask(tasks, caller.instance),
            user_task_running: await hasTask(tasks, caller.instance, "running"),
          },
        };
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "whoami",
      method: "GET",
      path: "/whoami",
      tag: "server",
      summary: "Who the caller is",
      access: PERSONS,
      answers: { 200: { description: "The caller.", schema: Identity } },
      async handle(_call, { principal: { id, role } }) {
        return { status: 200, body: { id, username: id, role } };
      },
    }),
  ];
}

/** A page of one status may come back empty, and say where to look on. */
async function hasTask(tasks: TaskIndex, instance: InstanceId, status?: TaskStatus): Promise<boolean> {
  for (let cursor: string | undefined; ; await nextTurn()) {
    const page = await tasks.list({
      instance,
      limit: 1,
      ...(status !== undefined && { status }),
      ...(cursor !== undefined && { cursor }),
    });
    if (page.tasks.length > 0) return true;
    if (page.nextCursor === undefined) return false;
    cursor = page.nextCursor;
  }
}

function healthOf({ mailroom, health: said }: Door): z.output<typeof Health> {
  const { state, waiting, retries, reason, since } = mailroom.store.writer.health;
  const { recovery } = mailroom.runtime.figures;
  const isWell = state !== "degraded" && state !== "failed";
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    status: isWell ? said.status : state,
    swarm_name: mailroom.swarm.name,
    timestamp: time(since ?? said.since),
    ...(!isWell && {
      store: {
        waiting,
        retries,
        ...(reason !== undefined && { reason }),
        ...(since !== undefined && { since: time(since) }),
      },
    }),
    ...(recovery !== undefined && { taking_up: recovery }),
  };
}
