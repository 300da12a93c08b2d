/** What to do when there is no connection: `fetch` says it in the words of the TLS library, if at all. */
import type { MailConnectionError } from "../client/index.js";

/** The other side answered, and not with TLS. Which of them it is depends on the version of Node. */
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
    return `something listens there, but it does not speak TLS: if that is meant, write ${plain} (links with swarm:// always mean https)`;
  }
  if (NOT_TRUSTED.has(reason)) {
    return "its certificate is signed by an authority that is not known here: name the authority's file in NODE_EXTRA_CA_CERTS";
  }
  if (reason === "ERR_TLS_CERT_ALTNAME_INVALID")
    return "its certificate is for another name than the URL has";
  return "start one with 'mailroom server', or check the URL";
}

function innermostCode(error: Error): string | undefined {
  const { cause } = error;
  const deeper = cause instanceof Error ? innermostCode(cause) : undefined;
  if (deeper !== undefined) return deeper;
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}
