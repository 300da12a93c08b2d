/** `mailroom mesh dev-ca`: a CA for this machine, and the certificates that it issues for loopback names. */

import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MailroomError } from "../../base/index.js";
import { replaceFile } from "../../base/node.js";
import { createAuthority, issueCertificate, type PemPair } from "./certificate.js";

export interface DevCaFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const LOOPBACK = /^(localhost|[a-z0-9-]+\.localhost|127(\.\d{1,3}){3}|::1)$/u;

/**
 * Creates the CA unless a valid one exists, and a certificate for the hosts.
 * @throws MailroomError for hosts that are not loopback
 */
export async function makeDevCertificates(
  directory: string,
  now: number,
  hosts: readonly [string, ...string[]] = ["localhost", "127.0.0.1", "::1"],
): Promise<DevCaFiles> {
  const foreign = hosts.find((host) => !LOOPBACK.test(host));
  if (foreign !== undefined) {
    throw new MailroomError(
      "not_allowed",
      `${foreign} is not a loopback name: get a certificate from a public CA for it`,
    );
  }
  const paths = {
    ca: join(directory, "dev-ca.pem"),
    caKey: join(directory, "dev-ca.key"),
    cert: join(directory, "dev.pem"),
    key: join(directory, "dev.key"),
  };
  const authority = kept(paths, now) ?? (await createAuthority(now));
  const issued = await issueCertificate(authority, hosts, now);
  replaceFile(paths.ca, authority.cert);
  replaceFile(paths.caKey, authority.key);
  replaceFile(paths.cert, issued.cert);
  replaceFile(paths.key, issued.key);
  return { ca: paths.ca, cert: paths.cert, key: paths.key };
}

/** Returns the existing CA, unless it has expired. */
function kept({ ca, caKey }: { ca: string; caKey: string }, now: number): PemPair | undefined {
  if (!existsSync(ca) || !existsSync(caKey)) return undefined;
  const cert = readFileSync(ca, "utf8");
  if (Date.parse(new X509Certificate(cert).validTo) <= now) return undefined;
  return { cert, key: readFileSync(caKey, "utf8") };
}
