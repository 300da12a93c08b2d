/** ASP: Response Handling. What agents of our swarm may do in the mesh, where the swarm file lists these actions. */
import { z } from "zod";
import type { Action, ActionContext } from "../../engine/agent.js";
import type { HttpClient } from "../../net/index.js";
import { MeshError } from "../errors.js";
import type { MeshNode } from "../node.js";
import { derivedUuid } from "../sending.js";
import { writeOrigin } from "./origin.js";

export interface MeshActionsOptions {
  /** Asked for at each use: a swarm file is read before there is a node. */
  readonly node: () => MeshNode;
  /** For `github_create_issue`; without it there is no such action. The token is asked for at each use. */
  readonly github?: { readonly http: HttpClient; readonly token: () => string | undefined };
}

export function meshActions({ node, github }: MeshActionsOptions): readonly Action[] {
  const swarmOf = (alias: string) => {
    const swarm = node().byAlias(alias);
    if (swarm === undefined) throw new MeshError("swarm_not_found", `there is no mesh swarm ${alias} here`);
    return swarm;
  };
  const actions = [
    action({
      name: "mesh_send",
      description: "Sends a message to a member of a mesh swarm, or to all its members.",
      schema: z.object({
        swarm: z.string().describe("The alias of the swarm."),
        to: z.string().default("broadcast").describe("An agent of the swarm, or broadcast."),
        content: z.string().min(1),
      }),
      idempotent: true,
      // The id follows from the call, so that a repeated call is the same message.
      run: async ({ swarm, to, content }, context) => {
        const messageId = derivedUuid(`action/${context.idempotencyKey}`);
        const origin = originOf(context, messageId, `Message to ${to}`);
        const { recipients, leftOut = [] } = await node().send({
          swarmId: swarmOf(swarm).id,
          to,
          content,
          messageId,
          origin,
        });
        const others = leftOut.length > 0 ? `; not to ${leftOut.join(", ")}, for whom too much waits` : "";
        return `sent to ${recipients.join(", ") || "nobody: there are no other members"}${others}`;
      },
    }),
    action({
      name: "mesh_mute",
      description: "Silently drops what an agent of the mesh says from now on.",
      schema: z.object({ agent: z.string(), reason: z.string().optional() }),
      idempotent: true,
      run: async ({ agent, reason }) => {
        await node().mute("agent", agent, reason);
        return `${agent} is muted`;
      },
    }),
    action({
      name: "mesh_unmute",
      description: "Hears an agent of the mesh again.",
      schema: z.object({ agent: z.string() }),
      idempotent: true,
      run: async ({ agent }) =>
        (await node().unmute("agent", agent)) ? `${agent} is heard again` : `${agent} was not muted`,
    }),
    action({
      name: "mesh_leave",
      description: "Leaves a mesh swarm for good.",
      schema: z.object({ swarm: z.string().describe("The alias of the swarm.") }),
      idempotent: false,
      run: async ({ swarm }) => {
        await node().leave(swarmOf(swarm).id);
        return `left ${swarm}`;
      },
    }),
  ];
  return github === undefined ? actions : [...actions, createIssue(github)];
}

/** So that a reply comes back to the agent that has sent the message, in the task in which it did. */
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
      if (secret === undefined) throw new MeshError("not_allowed", "no GitHub token is configured");
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
      if (answer.status !== 201) throw new Error(`GitHub answers ${answer.status}`);
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
