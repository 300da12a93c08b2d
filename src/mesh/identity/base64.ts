/**
 * Base64 that has one spelling. Node's own decoder takes missing padding, the URL alphabet and junk; others skip
 * line breaks. What two peers read differently must not be signed, counted or compared.
 *
 * The last character of a group that is not full carries two or four bits that no byte uses: they must be zero.
 */
const STANDARD = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$/u;
const URL_SAFE = /^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?$/u;

/** `undefined` unless the text is the one spelling of some bytes. */
export function decodeBase64(text: string): Buffer | undefined {
  return STANDARD.test(text) ? Buffer.from(text, "base64") : undefined;
}

/** Without padding, as in a JWT. */
export function decodeBase64Url(text: string): Buffer | undefined {
  return URL_SAFE.test(text) ? Buffer.from(text, "base64url") : undefined;
}
