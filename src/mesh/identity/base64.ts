/**
 * Strict base64 with exactly one encoding per byte sequence. Node's decoder accepts missing padding, the URL alphabet
 * and invalid characters; other decoders skip line breaks. Text that peers decode differently must not be signed,
 * counted or compared.
 *
 * The last character of an incomplete group carries two or four unused bits, which must be zero.
 */
const STANDARD = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$/u;
const URL_SAFE = /^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?$/u;

/** Returns `undefined` unless the text is canonical base64. */
export function decodeBase64(text: string): Buffer | undefined {
  return STANDARD.test(text) ? Buffer.from(text, "base64") : undefined;
}

/** Without padding, as in a JWT. */
export function decodeBase64Url(text: string): Buffer | undefined {
  return URL_SAFE.test(text) ? Buffer.from(text, "base64url") : undefined;
}
