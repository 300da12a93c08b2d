/** X.509 certificates for development (RFC 5280): a local CA and the certificates that it issues. */
import { createPrivateKey, KeyObject, randomBytes, webcrypto } from "node:crypto";
import { isIP } from "node:net";

export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

const EC_P256 = { name: "ECDSA", namedCurve: "P-256" } as const;
const DAY = 86_400_000;

// Loaded on demand: only a development command creates certificates.
const load = async () => await import("@peculiar/x509");

/** Creates a CA that can issue host certificates but no intermediate CAs. */
export async function createAuthority(now: number): Promise<PemPair> {
  const x509 = await load();
  const keys = await webcrypto.subtle.generateKey(EC_P256, true, ["sign", "verify"]);
  const name = `Mailroom development CA ${randomBytes(4).toString("hex")}`;
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [name] }],
    keys,
    ...validity(now, 825),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pems(cert, keys.privateKey);
}

/** Issues a certificate for host names and addresses. */
export async function issueCertificate(
  authority: PemPair,
  hosts: readonly [string, ...string[]],
  now: number,
): Promise<PemPair> {
  const x509 = await load();
  const issuer = new x509.X509Certificate(authority.cert);
  const signingKey = await importPrivateKey(authority.key);
  const { publicKey, privateKey } = await webcrypto.subtle.generateKey(EC_P256, true, ["sign", "verify"]);
  const cert = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [hosts[0]] }],
    issuer: issuer.subjectName,
    publicKey,
    signingKey,
    ...validity(now, 365),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        hosts.map((host) => ({ type: isIP(host) === 0 ? x509.DNS : x509.IP, value: host })),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return pems(cert, privateKey);
}

/** Backdated, so that clients whose clock is slightly behind accept a new certificate. */
function validity(now: number, days: number): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date(now - DAY), notAfter: new Date(now + days * DAY) };
}

async function importPrivateKey(pem: string): Promise<webcrypto.CryptoKey> {
  const pkcs8 = createPrivateKey(pem).export({ type: "pkcs8", format: "der" });
  return await webcrypto.subtle.importKey("pkcs8", pkcs8, EC_P256, false, ["sign"]);
}

function pems(cert: { toString(format: "pem"): string }, key: webcrypto.CryptoKey): PemPair {
  return {
    cert: `${cert.toString("pem")}\n`,
    key: KeyObject.from(key).export({ type: "pkcs8", format: "pem" }).toString(),
  };
}
