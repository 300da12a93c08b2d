/** Tokens for admins: see and revoke them. There is no way to make one over the network. */
import { ADMINS, defineRoute, NO_INPUT, type Route } from "../../../extension/index.js";
import type { MailDoor } from "../door.js";
import { RevokedToken, TokenList, TokenPath, TokenQuery } from "../schemas/administration.js";

export function tokenRoutes({ tokens }: MailDoor): Route[] {
  if (tokens === undefined) return [];
  return [
    defineRoute({
      ...NO_INPUT,
      id: "adminListTokens",
      method: "GET",
      path: "/admin/tokens",
      tag: "administration",
      summary: "List tokens, without their secrets",
      access: ADMINS,
      query: TokenQuery,
      answers: { 200: { description: "A page in the order of creation.", schema: TokenList } },
      async handle({ query }, { principal }) {
        const page = await tokens.list(query.cursor === undefined ? {} : { cursor: query.cursor });
        const body = {
          tokens: page.tokens.map(({ tokenId, role, id, label, createdAt, lastUsedAt, revokedAt }) => ({
            token_id: tokenId,
            role,
            id,
            label: label ?? null,
            created_at: createdAt,
            last_used_at: lastUsedAt ?? null,
            revoked_at: revokedAt ?? null,
            current: tokenId === principal.tokenId,
          })),
          next_cursor: page.nextCursor ?? null,
        };
        return { status: 200, body };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminRevokeToken",
      method: "POST",
      path: "/admin/tokens/{token_id}/revoke",
      tag: "administration",
      summary: "Revoke a token",
      description:
        "The token is rejected from now on, and its streams end. Revoking it again changes nothing.",
      access: ADMINS,
      params: TokenPath,
      answers: { 200: { description: "The token is revoked.", schema: RevokedToken } },
      errors: ["unknown_token", "store_busy", "store_failed"],
      async handle({ params, request }, caller) {
        await tokens.revoke(params.token_id);
        request.log.info({ admin: caller.principal.id, token: params.token_id }, "an admin revoked a token");
        return { status: 200, body: { token_id: params.token_id, status: "revoked" } };
      },
    }),
  ];
}
