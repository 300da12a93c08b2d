/** ASP: Response Handling. The actions with which local agents use the mesh, if the swarm file lists them. */

import { z } from "zod";
import { MailroomError } from "../../base/index.js";
import type { Action, ActionContext } from "../../engine/index.js";
import type { HttpClient } from "../../net/index.js";
import type { MeshAgent } from "../agent.js";
import { derivedUuid } from "../send/message.js";
import { writeOrigin } from "./origin.js";

export interface MeshActionsOptions {
  /** Called at each use, because swarm files are read before the agent is opened. */
  readonly agent: () => MeshAgent;
  /** For `github_create_issue`, which does not exist without it. The token is read at each use. */
  readonly github?: { readonly http: HttpClient; readonly token: () => string | undefined };
}

export function meshActions({ agent, github }: MeshActionsOptions): readonly Action[] {
  const swarmOf = (alias: string) => {
    const swarm = agent().byAlias(alias);
    if (swarm === undefined) throw new MailroomError("swarm_not_found", `unknown mesh swarm ${alias}`);
    return swarm;
  };
  const actions = [
    action({
      name: "mesh_send",
      description: "Sends a message to a member of a mesh swarm, or to all its members.",
      schema: z.object({
        swarm: z.string().describe("The alias of the swarm."),
        to: z.string().default("broadcast").describe("A member of the swarm, or broadcast."),
        content: z.string().min(1),
      }),
      idempotent: true,
      // The id is derived from the call, so that a repeated call sends the same message.
      run: async ({ swarm, to, content }, context) => {
        const messageId = derivedUuid(`action/${context.idempotencyKey}`);
        const origin = originOf(context, messageId, `Message to ${to}`);
        const { recipients, leftOut = [] } = await agent().send({
          swarmId: swarmOf(swarm).id,
          to,
          content,
          messageId,
          origin,
        });
        const others =
          leftOut.length > 0 ? `; not to ${leftOut.join(", ")}: too many messages are pending` : "";
        if (recipients.length === 0) return `not sent: the swarm has no other members${others}`;
        return `sent to ${recipients.join(", ")}${others}`;
      },
    }),
    action({
      name: "mesh_mute",
      description: "Drops all further messages of a mesh agent silently.",
      schema: z.object({ agent: z.string(), reason: z.string().optional() }),
      idempotent: true,
      run: async ({ agent: muted, reason }) => {
        await agent().mute("agent", muted, reason);
        return `${muted} is muted`;
      },
    }),
    action({
      name: "mesh_unmute",
      description: "Accepts messages of a mesh agent again.",
      schema: z.object({ agent: z.string() }),
      idempotent: true,
      run: async ({ agent: muted }) =>
        (await agent().unmute("agent", muted)) ? `${muted} is no longer muted` : `${muted} was not muted`,
    }),
    action({
      name: "mesh_leave",
      description: "Leaves a mesh swarm permanently.",
      schema: z.object({ swarm: z.string().describe("The alias of the swarm.") }),
      idempotent: false,
      run: async ({ swarm }) => {
        await agent().leave(swarmOf(swarm).id);
        return `left ${swarm}`;
      },
    }),
  ];
  return github === undefined ? actions : [...actions, createIssue(github)];
}

/** Records the sending agent and task, so that a reply returns to them. */
function originOf({ agent, instance, task }: ActionContext, requestId: string, subject: string): string {
  const { id: taskId, owner, contributors } = task;
  return writeOrigin({
    taskId,
    owner,
    contributors: [...contributors],
    instance,
    agent,
    requestId,
    subject,
  });
}

function createIssue({ http, token }: NonNullable<MeshActionsOptions["github"]>): Action {
  return action({
    name: "github_create_issue",
    description: "Opens an issue in a GitHub repository.",
    schema: z.object({
      repo: z
        .string()
        .regex(/^[\w.-]+\/[\w.-]+$/u)
        .describe("owner/name"),
      title: z.string().min(1).max(256),
      body: z.string().default(""),
    }),
    idempotent: false,
    run: async ({ repo, title, body }) => {
      const secret = token();
      if (secret === undefined) throw new MailroomError("not_allowed", "no GitHub token is configured");
      const answer = await http.request(`https://api.github.com/repos/${repo}/issues`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${secret}`,
          accept: "application/vnd.github+json",
          "content-type": "application/json",
        },
        body: JSON.stringify({ title, body }),
        timeLimit: 15_000,
      });
      if (answer.status !== 201) throw new Error(`GitHub responded with status ${answer.status}`);
      const { html_url } = z.object({ html_url: z.string() }).parse(JSON.parse(answer.text()));
      return html_url;
    },
  });
}

function action<Schema extends z.ZodType>(parts: {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly idempotent: boolean;
  readonly run: (args: z.output<Schema>, context: ActionContext) => Promise<string>;
}): Action {
  const { name, description, schema, idempotent } = parts;
  return {
    name,
    description,
    idempotent,
    parameters: z.toJSONSchema(schema, { io: "input" }),
    check: (args) => {
      const parsed = schema.safeParse(args);
      return parsed.success
        ? { ok: true, value: parsed.data }
        : { ok: false, message: z.prettifyError(parsed.error) };
    },
    run: async (args, context) => parts.run(schema.parse(args), context),
  };
}
