/** `mailroom mesh dev-ca`: an authority for this machine only, and certificates that it signs for loopback names. */
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../../files/durable.js";
import { MeshError } from "../errors.js";
import { createAuthority, issueCertificate, type PemPair } from "./certificate.js";

export interface DevCaFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const LOOPBACK = /^(localhost|[a-z0-9-]+\.localhost|127(\.\d{1,3}){3}|::1)$/u;

/**
 * Makes the authority if there is none that is valid, and a certificate for the hosts.
 * @throws MeshError for hosts that are not loopback: this authority is for nobody else.
 */
export async function makeDevCertificates(
  directory: string,
  now: number,
  hosts: readonly [string, ...string[]] = ["localhost", "127.0.0.1", "::1"],
): Promise<DevCaFiles> {
  const foreign = hosts.find((host) => !LOOPBACK.test(host));
  if (foreign !== undefined) {
    throw new MeshError("not_allowed", `${foreign} is not a loopback name: get a real certificate for it`);
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

/** The authority that is here already, unless its days are over. */
function kept({ ca, caKey }: { ca: string; caKey: string }, now: number): PemPair | undefined {
  if (!existsSync(ca) || !existsSync(caKey)) return undefined;
  const cert = readFileSync(ca, "utf8");
  if (Date.parse(new X509Certificate(cert).validTo) <= now) return undefined;
  return { cert, key: readFileSync(caKey, "utf8") };
}
