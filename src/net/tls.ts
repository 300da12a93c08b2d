import { readFileSync } from "node:fs";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";

/** Certificates are verified, always; what can be set is whom to trust besides the public authorities. */
export interface TlsOptions {
  /** A PEM file with further authorities: a company's, or the development CA. Read once. */
  readonly extraCaFile?: string;
  /** The same as text. */
  readonly extraCa?: string;
}

export interface ConnectionTls {
  readonly rejectUnauthorized: true;
  readonly minVersion: "TLSv1.2";
  readonly secureContext?: SecureContext;
}

/** @throws Error when the file cannot be read or holds no certificate. */
export function connectionTls({ extraCaFile, extraCa }: TlsOptions = {}): ConnectionTls {
  const extra: string[] = [];
  if (extraCaFile !== undefined) extra.push(certificatesIn(readFileSync(extraCaFile, "utf8"), extraCaFile));
  if (extraCa !== undefined) extra.push(certificatesIn(extraCa, "the extra authority"));
  const minVersion = "TLSv1.2";
  if (extra.length === 0) return { rejectUnauthorized: true, minVersion };
  // Naming authorities replaces Node's own list, so that list has to be named again. Reading them all takes tens of
  // milliseconds, so it is done once and not for each connection.
  const secureContext = createSecureContext({ minVersion, ca: [...rootCertificates, ...extra] });
  return { rejectUnauthorized: true, minVersion, secureContext };
}

function certificatesIn(pem: string, where: string): string {
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) {
    throw new Error(`${where} holds no certificate: a PEM file with -----BEGIN CERTIFICATE----- is needed`);
  }
  return pem;
}
