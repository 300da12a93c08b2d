/** The local origin of a message to a peer, stored with the message so that a reply can be delivered to it. */
import { z } from "zod";
import { INSTANCE_ROLES } from "../../engine/index.js";

const Origin = z.object({
  taskId: z.string(),
  owner: z.string(),
  contributors: z.array(z.string()),
  instance: z.object({ role: z.enum(INSTANCE_ROLES), id: z.string() }),
  agent: z.string(),
  requestId: z.string(),
  subject: z.string(),
});
export type Origin = z.output<typeof Origin>;

export function writeOrigin(origin: Origin): string {
  return JSON.stringify(origin);
}

export function readOrigin(text: string | undefined): Origin | undefined {
  if (text === undefined) return undefined;
  const parsed = Origin.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : undefined;
}
