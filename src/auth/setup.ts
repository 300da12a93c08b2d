/** Builds the server's authenticator from settings. */
import { readFile } from "node:fs/promises";
import { type Clock, MailroomError, type Report } from "../base/index.js";
import { chain } from "./chain.js";
import { devAuthenticator } from "./dev.js";
import type { JwtKey } from "./jwt/key.js";
import { reasonOf } from "./reason.js";
import type { Authenticator } from "./result.js";
import { serviceAuthenticator } from "./service.js";
import type { AuthSettings, JwtSettings } from "./settings.js";
import type { Tokens } from "./tokens/tokens.js";

export interface AuthParts {
  readonly tokens: Tokens;
  readonly clock: Pick<Clock, "now">;
  readonly report?: Report;
}

/** @throws MailroomError `bad_auth_settings` when a configured provider cannot be set up */
export async function createAuthenticator(
  settings: AuthSettings & { readonly dev: boolean },
  parts: AuthParts,
): Promise<Authenticator> {
  if (settings.dev) return devAuthenticator();
  const providers: Authenticator[] = [];
  for (const mode of settings.mode) {
    switch (mode) {
      case "token":
        providers.push(parts.tokens);
        break;
      case "service":
        providers.push(serviceFrom(settings, parts));
        break;
      case "jwt":
        providers.push(await jwtFrom(settings, parts));
        break;
      default:
        mode satisfies never;
    }
  }
  const [only, ...others] = providers;
  if (only === undefined)
    throw new MailroomError("bad_auth_settings", "auth.mode names no provider: no caller could authenticate");
  return others.length === 0 ? only : chain(...providers);
}

function serviceFrom(settings: AuthSettings, { clock, report }: AuthParts): Authenticator {
  const { tokenInfoEndpoint } = settings;
  if (tokenInfoEndpoint === undefined) {
    throw new MailroomError(
      "bad_auth_settings",
      "the authentication service requires auth.token_info_endpoint",
    );
  }
  const { authEndpoint, timeout, cacheSize, cacheTime, refusalCacheTime } = settings;
  const limits = { timeout, cacheSize, cacheTime, refusalCacheTime };
  return serviceAuthenticator({ authEndpoint, tokenInfoEndpoint, ...limits, clock, report });
}

async function jwtFrom(settings: AuthSettings, { clock, report }: AuthParts): Promise<Authenticator> {
  const { jwt, timeout, cacheSize } = settings;
  const { issuer, audience, algorithms, roleClaim, idClaim, roles, clockTolerance } = jwt;
  // Most servers check no JWT, and what checks them is large.
  const { jwtAuthenticator } = await import("./jwt/authenticator.js");
  return jwtAuthenticator({
    key: await keyFrom(jwt),
    claims: { roleClaim, idClaim, roles },
    issuer,
    audience,
    algorithms,
    clockTolerance,
    timeout,
    cacheSize,
    clock,
    report,
  });
}

async function keyFrom({ jwksUrl, key, keyFile, secret }: JwtSettings): Promise<JwtKey> {
  const given: JwtKey[] = [];
  if (jwksUrl !== undefined) given.push({ kind: "jwks", url: jwksUrl });
  if (key !== undefined) given.push({ kind: "public", text: key });
  if (keyFile !== undefined) given.push({ kind: "public", text: await readKeyFile(keyFile) });
  if (secret !== undefined) given.push({ kind: "secret", secret });
  const [only, ...others] = given;
  if (only !== undefined && others.length === 0) return only;
  throw new MailroomError("bad_auth_settings", "JWT: give exactly one of jwks_url, key, key_file and secret");
}

async function readKeyFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new MailroomError("bad_auth_settings", `JWT: the key file cannot be read: ${reasonOf(error)}`);
  }
}
