/**
 * Public keys that must not be accepted: points of small order, for which one signature can fit many messages, and
 * encodings of a coordinate beyond the field's prime, which are second spellings of another point.
 */

/** The y coordinates of all points of order 1, 2, 4 and 8 in their canonical encoding, without the sign bit. */
const SMALL_ORDER = new Set([
  // order 4
  "0000000000000000000000000000000000000000000000000000000000000000",
  // order 1
  "0100000000000000000000000000000000000000000000000000000000000000",
  // order 8
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  // order 2: y = p - 1
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

const FIELD_PRIME = 2n ** 255n - 19n;

export function isWeakPoint(raw: Uint8Array): boolean {
  const y = Buffer.from(raw);
  y[31] = (y[31] ?? 0) & 0x7f;
  return SMALL_ORDER.has(y.toString("hex")) || BigInt(`0x${y.reverse().toString("hex")}`) >= FIELD_PRIME;
}
