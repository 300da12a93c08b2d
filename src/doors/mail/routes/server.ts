/** The server about itself. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { z } from "zod";
import type { InstanceId, TaskReads, TaskStatus } from "../../../engine/index.js";
import {
  definePublicRoute,
  defineRoute,
  MAIL_ADMINS,
  MAIL_USERS,
  NO_INPUT,
  PUBLIC,
  type Route,
  type RouteResponse,
} from "../../../extension/index.js";
import { PROTOCOL_VERSION } from "../../../mail/index.js";
import type { MailDoor } from "../door.js";
import { Health, HealthRequest, Identity, ServerInfo, ServerStatus } from "../schemas/server.js";

export function serverRoutes(door: MailDoor): Route[] {
  const { mailroom, server, state, clock } = door;
  const health = (): RouteResponse => ({ status: 200, body: healthOf(door) });
  return [
    definePublicRoute({
      ...NO_INPUT,
      id: "getServer",
      method: "GET",
      path: "/",
      tag: "server",
      summary: "Describe this server",
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
            uptime: (clock.now() - state.startedAt) / 1000,
            capabilities: state.capabilities,
            ...state.info,
            server: { name: "mailroom", version: server.version },
          },
        };
      },
    }),
    definePublicRoute({
      ...NO_INPUT,
      id: "getHealth",
      method: "GET",
      path: "/health",
      tag: "server",
      summary: "Report the server's health",
      access: PUBLIC,
      answers: { 200: { description: "The swarm's health.", schema: Health } },
      handle: async () => health(),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "setHealth",
      method: "POST",
      path: "/health",
      tag: "server",
      summary: "Set the reported health",
      description: "`GET /health` shows the value until the next start.",
      access: MAIL_ADMINS,
      body: HealthRequest,
      idempotent: true,
      answers: { 200: { description: "The swarm's health.", schema: Health } },
      handle: ({ body, request }, caller) =>
        request.once(caller, async (remember) => {
          const before = state.status;
          state.status = { word: body.status, since: clock.now() };
          const answer = health();
          const rows = remember({ kind: "answer", status: answer.status, body: answer.body });
          try {
            if (rows.length > 0) await mailroom.store.commit({ appends: [], rows });
          } catch (error) {
            state.status = before;
            throw error;
          }
          return answer;
        }),
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getStatus",
      method: "GET",
      path: "/status",
      tag: "server",
      summary: "Show the status of the server and of the caller's tasks",
      access: MAIL_USERS,
      answers: { 200: { description: "The status.", schema: ServerStatus } },
      async handle(_call, caller) {
        const { tasks } = mailroom.store;
        return {
          status: 200,
          body: {
            swarm: { name: mailroom.swarm.name, status: "ready" },
            active_users: state.activeUsers,
            user_mail_ready: await hasTask(tasks, caller.instance),
            user_task_running: await hasTask(tasks, caller.instance, "running"),
          },
        };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "whoami",
      method: "GET",
      path: "/whoami",
      tag: "server",
      summary: "Show the authenticated caller",
      access: MAIL_USERS,
      answers: { 200: { description: "The caller.", schema: Identity } },
      async handle(_call, { principal: { id, role, provider, tokenId } }) {
        const body = { id, username: id, role, provider, token_id: tokenId ?? null, dev: server.dev };
        return { status: 200, body };
      },
    }),
  ];
}

/** A page of one status may come back empty, and say where to look on. */
async function hasTask(tasks: TaskReads, instance: InstanceId, status?: TaskStatus): Promise<boolean> {
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

function healthOf({ mailroom, state: { status: said, degraded } }: MailDoor): z.output<typeof Health> {
  const { state, waiting, retries, reason, since } = mailroom.store.writer.health;
  const { recovery } = mailroom.runtime.stats;
  const isWell = state !== "degraded" && state !== "failed";
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    status: isWell ? said.word : state,
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
    ...(degraded.length > 0 && {
      degraded: degraded.map(({ extension, detail }) => ({
        extension,
        status: "degraded" as const,
        ...(detail !== undefined && { detail }),
      })),
    }),
  };
}
