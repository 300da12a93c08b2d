/**
 * Base64 that has one spelling. Node's own decoder takes missing padding, the URL alphabet and junk; others skip
 * line breaks. What two peers read differently must not be signed, counted or compared.
 */
const STANDARD = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/u;
const URL_SAFE = /^[A-Za-z0-9_-]*$/u;

/** `undefined` unless the text is the one spelling of some bytes. */
export function decodeBase64(text: string): Buffer | undefined {
  if (!STANDARD.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}

/** Without padding, as in a JWT. */
export function decodeBase64Url(text: string): Buffer | undefined {
  if (!URL_SAFE.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
