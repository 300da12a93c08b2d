/** What the control socket answers about tokens. */
import { z } from "zod";
import { type CreatedToken, ROLES, type TokenInfo } from "../../auth/index.js";

const Info = z.object({
  tokenId: z.string(),
  role: z.enum(ROLES),
  id: z.string(),
  label: z.string().exactOptional(),
  createdAt: z.number(),
  lastUsedAt: z.number().exactOptional(),
  revokedAt: z.number().exactOptional(),
});
const Created = z.object({ token: z.string(), info: Info });
const List = z.object({ tokens: z.array(Info) });

export function readCreated(value: unknown): CreatedToken {
  return Created.parse(value);
}

export function readTokens(value: unknown): readonly TokenInfo[] {
  return List.parse(value).tokens;
}
