import { readFileSync } from "node:fs";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";

/** Certificates are always verified; settings can only add trusted authorities. */
export interface TlsOptions {
  /** A PEM file with further authorities, such as a company's or the development CA. Read once. */
  readonly extraCaFile?: string;
  /** The same as text. */
  readonly extraCa?: string;
}

export interface ConnectionTls {
  readonly rejectUnauthorized: true;
  readonly minVersion: "TLSv1.2";
  readonly secureContext?: SecureContext;
}

/** @throws Error when the file cannot be read or contains no certificate */
export function connectionTls({ extraCaFile, extraCa }: TlsOptions = {}): ConnectionTls {
  const extra: string[] = [];
  if (extraCaFile !== undefined) extra.push(certificatesIn(readFileSync(extraCaFile, "utf8"), extraCaFile));
  if (extraCa !== undefined) extra.push(certificatesIn(extraCa, "the extra authority"));
  const minVersion = "TLSv1.2";
  if (extra.length === 0) return { rejectUnauthorized: true, minVersion };
  // Passing authorities replaces Node's own list, so that list is passed again. Parsing all of them takes tens of
  // milliseconds, so it happens once and not per connection.
  const secureContext = createSecureContext({ minVersion, ca: [...rootCertificates, ...extra] });
  return { rejectUnauthorized: true, minVersion, secureContext };
}

function certificatesIn(pem: string, where: string): string {
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) {
    throw new Error(`${where} contains no certificate: use a PEM file with -----BEGIN CERTIFICATE-----`);
  }
  return pem;
}
