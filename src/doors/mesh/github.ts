/** ASP: Hybrid Mode. Turns GitHub webhooks into notifications for the swarm, and reads such notifications. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { MeshMessage, MessageExtras, Reference } from "../../mesh/index.js";

export const GITHUB_ACTIONS = [
  "issue_created",
  "issue_assigned",
  "comment_added",
  "pr_opened",
  "review_requested",
] as const;
export type GithubAction = (typeof GITHUB_ACTIONS)[number];

/** Checks `X-Hub-Signature-256` over the raw bytes of the body. */
export function isFromGithub(body: Uint8Array, signature: string | undefined, secret: string): boolean {
  const hex = /^sha256=([0-9a-f]{64})$/u.exec(signature ?? "")?.[1];
  if (hex === undefined) return false;
  const expected = createHmac("sha256", secret).update(body).digest();
  return timingSafeEqual(Buffer.from(hex, "hex"), expected);
}

const Thing = z.object({ number: z.number().int(), title: z.string(), html_url: z.url() });
const Payload = z.object({
  action: z.string(),
  repository: z.object({ full_name: z.string().regex(/^[\w.-]+\/[\w.-]+$/u) }),
  issue: Thing.extend({ pull_request: z.unknown() }).partial({ pull_request: true }).optional(),
  pull_request: Thing.optional(),
  comment: z.object({ html_url: z.url() }).optional(),
});

export interface GithubNotification {
  readonly content: string;
  readonly extras: MessageExtras;
}

/** Returns the notification for one of the five events of the protocol [ASP-GHUB-02]; `undefined` for other events. */
export function notificationFor(event: string, value: unknown): GithubNotification | undefined {
  const parsed = Payload.safeParse(value);
  if (!parsed.success) return undefined;
  const { issue, pull_request, comment, repository } = parsed.data;
  const action = actionOf(event, parsed.data.action);
  const subject = pull_request ?? issue;
  if (action === undefined || subject === undefined) return undefined;
  const isPull = pull_request !== undefined || issue?.pull_request !== undefined;
  const reference: Reference = {
    type: isPull ? "github_pr" : "github_issue",
    repo: repository.full_name,
    number: subject.number,
    action: REFERENCE_ACTION[action],
  };
  return {
    content: `${WORDS[action]}: ${repository.full_name}#${subject.number} ${subject.title}`.slice(0, 1_000),
    extras: {
      references: [reference],
      metadata: {
        github_url: comment?.html_url ?? subject.html_url,
        action,
        event: `github:${action}`,
      },
    },
  };
}

const WORDS: Readonly<Record<GithubAction, string>> = {
  issue_created: "New issue",
  issue_assigned: "Issue assigned",
  comment_added: "New comment",
  pr_opened: "New pull request",
  review_requested: "Review requested",
};
const REFERENCE_ACTION: Readonly<Record<GithubAction, string>> = {
  issue_created: "mention",
  issue_assigned: "assigned",
  comment_added: "mention",
  pr_opened: "mention",
  review_requested: "review_requested",
};

function actionOf(event: string, action: string): GithubAction | undefined {
  switch (`${event}.${action}`) {
    case "issues.opened":
      return "issue_created";
    case "issues.assigned":
      return "issue_assigned";
    case "issue_comment.created":
      return "comment_added";
    case "pull_request.opened":
      return "pr_opened";
    case "pull_request.review_requested":
      return "review_requested";
    default:
      return undefined;
  }
}

/**
 * Reads what a notification is about. Metadata, event name and reference each suffice; none is signed, so all are
 * hints.
 */
export function readNotification(
  message: Pick<MeshMessage, "type" | "metadata" | "references">,
): { readonly action?: GithubAction; readonly url?: string; readonly reference?: Reference } | undefined {
  if (message.type !== "notification") return undefined;
  const { metadata = {}, references = [] } = message;
  const named = [metadata.action, metadata.event]
    .filter((name) => typeof name === "string")
    .map((name) => name.replace(/^github:/u, ""));
  const action = GITHUB_ACTIONS.find((known) => named.includes(known));
  const url = typeof metadata.github_url === "string" ? metadata.github_url : undefined;
  const reference = references.find(({ type }) => type.startsWith("github_"));
  if (action === undefined && url === undefined && reference === undefined) return undefined;
  return {
    ...(action !== undefined && { action }),
    ...(url !== undefined && { url }),
    ...(reference !== undefined && { reference }),
  };
}
