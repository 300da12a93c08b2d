/** Settings of authentication. */
import {
  boolean,
  choiceKind,
  defineSettings,
  duration,
  httpUrl,
  integer,
  list,
  path,
  type SettingValues,
  table,
  text,
  textKind,
} from "../base/index.js";
import { PUBLIC_ALGORITHMS, SECRET_ALGORITHMS } from "./jwt/algorithms.js";
import { ROLES } from "./roles.js";

const MODES = ["token", "service", "jwt"] as const;
/** A verifier takes its key from exactly one of these. */
const JWT_KEYS = ["jwksUrl", "key", "keyFile", "secret"] as const;

const tokenInfoEndpoint = httpUrl("auth.token_info_endpoint", {
  env: ["TOKEN_INFO_ENDPOINT"],
  doc: "External service: endpoint that returns the role and id of a token.",
});

const jwt = {
  jwksUrl: httpUrl("auth.jwt.jwks_url", { doc: "URL of the issuer's published keys." }),
  key: text("auth.jwt.key", { doc: "The issuer's public key: PEM (key or certificate), JWK or JWK set." }),
  keyFile: path("auth.jwt.key_file", { doc: "File with the issuer's public key, in the same formats." }),
  secret: text("auth.jwt.secret", {
    secret: true,
    doc: "Secret shared with the issuer, at least 32 bytes, for HS256, HS384 and HS512.",
  }),
  issuer: text("auth.jwt.issuer", { defaultText: "any", doc: "Required value of `iss`." }),
  audience: list("auth.jwt.audience", textKind, {
    default: [],
    defaultText: "any",
    doc: "Accepted values of `aud`; the token must name one of them.",
  }),
  algorithms: list("auth.jwt.algorithms", choiceKind([...PUBLIC_ALGORITHMS, ...SECRET_ALGORITHMS]), {
    default: [],
    defaultText: "all that fit the key",
    doc: "Accepted algorithms.",
  }),
  roleClaim: text("auth.jwt.role_claim", {
    default: "role",
    doc: "Claim that contains the role or a list of roles; dots lead into objects.",
  }),
  idClaim: text("auth.jwt.id_claim", { default: "sub", doc: "Claim that contains the caller's id." }),
  roles: table("auth.jwt.roles", choiceKind(ROLES), {
    default: {},
    doc: "The issuer's names for Mailroom's roles, such as `{ ops = \"admin\" }`.",
  }),
  clockTolerance: duration("auth.jwt.clock_tolerance", {
    default: "5s",
    doc: "Accepted difference between the clocks.",
  }),
};

export const authSettings = defineSettings(
  {
    mode: list("auth.mode", choiceKind(MODES), {
      derive: (read) => {
        const isConfigured = {
          token: true,
          service: read(tokenInfoEndpoint) !== undefined,
          jwt: JWT_KEYS.some((name) => read(jwt[name]) !== undefined),
        };
        return MODES.filter((mode) => isConfigured[mode]);
      },
      defaultText: "`token`, and `service` and `jwt` where they are configured",
      doc: "Who authenticates callers, in this order: Mailroom's own tokens, the external service, JWT.",
    }),
    authEndpoint: httpUrl("auth.auth_endpoint", {
      env: ["AUTH_ENDPOINT"],
      doc: "External service: endpoint that exchanges an API key for a token. Without it the key itself is looked up.",
    }),
    tokenInfoEndpoint,
    timeout: duration("auth.timeout", {
      min: 1,
      default: "5s",
      doc: "How long to wait for an external service or identity provider.",
    }),
    cacheSize: integer("auth.cache_size", { min: 1, default: 10_000, doc: "Number of cached credentials." }),
    cacheTime: duration("auth.cache_time", {
      default: "1m",
      doc: "How long an answer of an external service is cached: the longest time that a revoked key still works.",
    }),
    refusalCacheTime: duration("auth.refusal_cache_time", {
      default: "5s",
      doc: "How long a rejection by an external service is cached.",
    }),
    // Decision A6: admins read every task; acting for its owner is another matter.
    adminsActForOwners: boolean("auth.admins_act_for_owners", {
      default: false,
      doc: "Let admins answer breakpoints, post messages and name approvers in tasks of other owners. Recorded in the audit log.",
    }),
    jwt,
  },
  {
    check(auth, report) {
      if (auth.mode.length === 0) {
        report("auth.mode", "auth.mode is empty, so no caller could authenticate", "add at least 'token'");
      }
      if (auth.mode.includes("service") && auth.tokenInfoEndpoint === undefined) {
        report(
          "auth.mode",
          "the external service requires auth.token_info_endpoint",
          "set TOKEN_INFO_ENDPOINT",
        );
      } else if (auth.authEndpoint !== undefined && auth.tokenInfoEndpoint === undefined) {
        report(
          "auth.auth_endpoint",
          "auth.auth_endpoint requires auth.token_info_endpoint",
          "set TOKEN_INFO_ENDPOINT",
        );
      }
      const keys = JWT_KEYS.filter((name) => auth.jwt[name] !== undefined).map((name) => jwt[name].key);
      const [first] = keys;
      if (keys.length > 1 && first !== undefined) {
        report(first, `only one key can be used, not ${keys.join(" and ")}`, "keep one of them");
      } else if (keys.length === 0 && auth.mode.includes("jwt")) {
        report("auth.mode", "JWT requires a key", "set auth.jwt.jwks_url, key, key_file or secret");
      }
    },
  },
);

export type AuthSettings = SettingValues<typeof authSettings>;
export type JwtSettings = AuthSettings["jwt"];
