/** Hints for failed connections; `fetch` reports only the TLS library's codes, if any. */
import type { MailConnectionError } from "../client/index.js";

/** The server answered without TLS. The code depends on the version of Node. */
const NOT_TLS: ReadonlySet<string> = new Set([
  "ERR_SSL_WRONG_VERSION_NUMBER",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
]);

const NOT_TRUSTED: ReadonlySet<string> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

export function connectionHint(error: MailConnectionError): string | undefined {
  if (error.code !== "unreachable") return undefined;
  const reason = innermostCode(error) ?? "";
  if (NOT_TLS.has(reason)) {
    const plain = error.url.replace(/^https:/, "http:");
    return `the server at this address does not use TLS: use ${plain} if that is intended (swarm:// links always use https)`;
  }
  if (NOT_TRUSTED.has(reason)) {
    return "its certificate is signed by an unknown CA: set NODE_EXTRA_CA_CERTS to the CA's file";
  }
  if (reason === "ERR_TLS_CERT_ALTNAME_INVALID")
    return "its certificate does not match the host name of the URL";
  return "start a server with 'mailroom server', or check the URL";
}

function innermostCode(error: Error): string | undefined {
  const { cause } = error;
  const deeper = cause instanceof Error ? innermostCode(cause) : undefined;
  if (deeper !== undefined) return deeper;
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}
