/** What must hold between settings. Each by itself is in order here. */

import type { ConfigProblem } from "./errors.js";
import type { Settings } from "./settings/index.js";
import { formatSource, type Source } from "./source.js";

export function checkSettings(
  { server, auth }: Settings,
  sourceOf: (key: string) => Source,
): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const report = (key: string, message: string, hint: string): void => {
    const source = sourceOf(key);
    const place = source.from === "default" ? {} : { place: formatSource(source) };
    problems.push({ key, ...place, message, hint });
  };

  // Decisions D6: in development everybody is believed, so nobody else may be able to call.
  if (server.dev && !isLoopback(server.host)) {
    report(
      "server.host",
      `with server.dev the server listens on this machine only, not on ${server.host}`,
      "leave the host out, or turn server.dev off",
    );
  }
  if ((server.tls.cert === undefined) !== (server.tls.key === undefined)) {
    const [given, missing] = server.tls.cert === undefined ? ["key", "cert"] : ["cert", "key"];
    report(
      `server.tls.${given}`,
      `server.tls.${given} needs server.tls.${missing} beside it`,
      "give both or neither",
    );
  }
  if (auth.mode.length === 0) {
    report("auth.mode", "auth.mode names nobody, so that nobody could call", "name at least 'token'");
  }
  if (auth.mode.includes("service") && auth.tokenInfoEndpoint === undefined) {
    report("auth.mode", "the external service needs auth.token_info_endpoint", "set TOKEN_INFO_ENDPOINT");
  } else if (auth.authEndpoint !== undefined && auth.tokenInfoEndpoint === undefined) {
    report(
      "auth.auth_endpoint",
      "auth.auth_endpoint needs auth.token_info_endpoint beside it",
      "set TOKEN_INFO_ENDPOINT",
    );
  }
  const { jwt } = auth;
  const keys = Object.entries({
    jwks_url: jwt.jwksUrl,
    key: jwt.key,
    key_file: jwt.keyFile,
    secret: jwt.secret,
  })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => `auth.jwt.${name}`);
  const [first] = keys;
  if (keys.length > 1 && first !== undefined) {
    report(first, `only one key can be checked against, not ${keys.join(" and ")}`, "keep one of them");
  } else if (keys.length === 0 && auth.mode.includes("jwt")) {
    report("auth.mode", "JWT needs a key", "set auth.jwt.jwks_url, key, key_file or secret");
  }
  return problems;
}

/** Whether only this machine can reach a server that listens there. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
