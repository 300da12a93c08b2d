import { PUBLIC_ALGORITHMS, SECRET_ALGORITHMS } from "../../auth/jwt/algorithms.js";
import { ROLES } from "../../auth/principal.js";
import type { Section } from "../declare.js";
import { choice, duration, httpUrl, listOf, mapOf, path, text, whole } from "../kinds.js";

export const AUTH_MODES = ["token", "service", "jwt"] as const;

export function authSettings(auth: Section) {
  const endpoints = {
    authEndpoint: auth.optional("auth_endpoint", {
      kind: httpUrl,
      env: ["AUTH_ENDPOINT"],
      doc: "External service: where a caller's key is exchanged for a token. Without it the key itself is asked about.",
    }),
    tokenInfoEndpoint: auth.optional("token_info_endpoint", {
      kind: httpUrl,
      env: ["TOKEN_INFO_ENDPOINT"],
      doc: "External service: tells role and id of a token.",
    }),
  };
  const jwt = auth.section(
    "jwt",
    "JSON Web Tokens of an identity provider. One key, from one of four places.",
    jwtSettings,
  );
  const hasKey = [jwt.jwksUrl, jwt.key, jwt.keyFile, jwt.secret].some((key) => key !== undefined);
  return {
    ...endpoints,
    jwt,
    timeout: auth.setting("timeout", {
      kind: duration({ min: 1 }),
      default: 5_000,
      doc: "How long an external service or an identity provider may take to answer.",
    }),
    cacheSize: auth.setting("cache_size", {
      kind: whole({ min: 1 }),
      default: 10_000,
      doc: "How many credentials are remembered.",
    }),
    cacheTime: auth.setting("cache_time", {
      kind: duration(),
      default: 60_000,
      doc: "How long an external service's answer is remembered: the longest that a withdrawn key still works.",
    }),
    refusalCacheTime: auth.setting("refusal_cache_time", {
      kind: duration(),
      default: 5_000,
      doc: "How long its refusal is remembered.",
    }),
    // Read last: what was configured is what is asked, unless said otherwise.
    mode: auth.setting("mode", {
      kind: listOf(choice(AUTH_MODES)),
      default: [
        "token",
        ...(endpoints.tokenInfoEndpoint === undefined ? [] : (["service"] as const)),
        ...(hasKey ? (["jwt"] as const) : []),
      ],
      otherwise: "`token`, and `service` and `jwt` where they are configured",
      doc: "Who is asked about a caller, in this order: Mailroom's own tokens, the external service, JWT.",
    }),
  };
}

function jwtSettings(jwt: Section) {
  return {
    jwksUrl: jwt.optional("jwks_url", { kind: httpUrl, doc: "Where the issuer publishes its keys." }),
    key: jwt.optional("key", {
      kind: text,
      doc: "The issuer's public key: PEM (key or certificate), JWK or JWK set.",
    }),
    keyFile: jwt.optional("key_file", { kind: path, doc: "A file with the same." }),
    secret: jwt.optional("secret", {
      kind: text,
      secret: true,
      doc: "A secret shared with the issuer, of at least 32 bytes, for HS256, HS384 and HS512.",
    }),
    issuer: jwt.optional("issuer", { kind: text, otherwise: "any", doc: "What `iss` must be." }),
    audience: jwt.setting("audience", {
      kind: listOf(text),
      default: [],
      otherwise: "any",
      doc: "What `aud` must name, one of these.",
    }),
    algorithms: jwt.setting("algorithms", {
      kind: listOf(choice([...PUBLIC_ALGORITHMS, ...SECRET_ALGORITHMS])),
      default: [],
      otherwise: "all that suit the key",
      doc: "Algorithms that are accepted.",
    }),
    roleClaim: jwt.setting("role_claim", {
      kind: text,
      default: "role",
      doc: "The claim that has the role, or a list of roles; dots lead into objects.",
    }),
    idClaim: jwt.setting("id_claim", {
      kind: text,
      default: "sub",
      doc: "The claim that has the caller's id.",
    }),
    roles: jwt.setting("roles", {
      kind: mapOf(choice(ROLES)),
      default: {},
      doc: 'The issuer\'s words for our roles, such as `{ ops = "admin" }`.',
    }),
    clockTolerance: jwt.setting("clock_tolerance", {
      kind: duration(),
      default: 5_000,
      doc: "By how much the clocks may differ.",
    }),
  };
}
