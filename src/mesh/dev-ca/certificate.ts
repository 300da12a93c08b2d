/** X.509 certificates for development (RFC 5280): a local authority, and what it signs for this machine. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { bits, boolean, der, integer, octets, oid, sequence, set, tagged, time, utf8 } from "./der.js";

export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

const ECDSA_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));
const DAY = 86_400_000;

interface CertificateInput {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signWith: KeyObject;
  readonly now: number;
  readonly days: number;
  readonly extensions: readonly Buffer[];
}

/** An authority that can sign for hosts, and for nothing above them. */
export function createAuthority(now: number): PemPair {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = `Mailroom development CA ${randomBytes(4).toString("hex")}`;
  const cert = certificate({
    subject: name,
    issuer: name,
    publicKey,
    signWith: privateKey,
    now,
    days: 825,
    extensions: [
      extension("2.5.29.19", true, sequence(boolean(true), integer(Buffer.from([0])))),
      // keyCertSign and cRLSign
      extension("2.5.29.15", true, bits(Buffer.from([0x06]), 1)),
      extension("2.5.29.14", false, octets(keyId(publicKey))),
    ],
  });
  return { cert, key: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

/** A certificate for host names and addresses, signed by the authority. */
export function issueCertificate(
  authority: PemPair,
  hosts: readonly [string, ...string[]],
  now: number,
): PemPair {
  const signWith = createPrivateKey(authority.key);
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const names = hosts.map((host) =>
    isIP(host) === 0
      ? der(0x82, Buffer.from(host, "ascii"))
      : der(0x87, Buffer.from(ipaddr.parse(host).toByteArray())),
  );
  const cert = certificate({
    subject: hosts[0],
    issuer: commonNameOf(authority.cert),
    publicKey,
    signWith,
    now,
    days: 365,
    extensions: [
      extension("2.5.29.19", true, sequence()),
      // digitalSignature
      extension("2.5.29.15", true, bits(Buffer.from([0x80]), 7)),
      // serverAuth
      extension("2.5.29.37", false, sequence(oid("1.3.6.1.5.5.7.3.1"))),
      extension("2.5.29.17", false, sequence(...names)),
      extension("2.5.29.35", false, sequence(der(0x80, keyId(createPublicKey(signWith))))),
    ],
  });
  return { cert, key: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

function certificate({
  subject,
  issuer,
  publicKey,
  signWith,
  now,
  days,
  extensions,
}: CertificateInput): string {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x01;
  const body = sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(serial),
    ECDSA_SHA256,
    nameOf(issuer),
    // A clock that is a little behind must not refuse a certificate of today.
    sequence(time(now - DAY), time(now + days * DAY)),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(3, sequence(...extensions)),
  );
  const signed = sequence(body, ECDSA_SHA256, bits(sign("sha256", body, signWith)));
  const lines = signed.toString("base64").match(/.{1,64}/gu) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function nameOf(commonName: string): Buffer {
  return sequence(set(sequence(oid("2.5.4.3"), utf8(commonName))));
}

function extension(id: string, critical: boolean, value: Uint8Array): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octets(value));
}

function keyId(key: KeyObject): Buffer {
  return createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();
}

function commonNameOf(cert: string): string {
  return new X509Certificate(cert).subject.replace(/^CN=/u, "");
}
