import { createPrivateKey, webcrypto, X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { X509Certificate as ReadCertificate, X509CertificateGenerator } from "@peculiar/x509";
import { describe, expect, it, onTestFinished } from "vitest";
import { createAuthority, issueCertificate, type PemPair } from "./certificate.js";
import { makeDevCertificates } from "./files.js";

const DAY = 86_400_000;
const daysAgo = (days: number): number => Date.now() - days * DAY;

function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-dev-ca-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function made(directory: string, now = Date.now()): Promise<PemPair & { readonly ca: string }> {
  const files = await makeDevCertificates(directory, now);
  const read = (path: string): string => readFileSync(path, "utf8");
  return { ca: read(files.ca), cert: read(files.cert), key: read(files.key) };
}

/**
 * Returns the error of a client that trusts the given CAs and connects to a server with the certificate, or nothing.
 */
async function complaint(
  { cert, key }: PemPair,
  { host = "localhost", ca }: { readonly host?: string; readonly ca?: string | string[] },
): Promise<string | undefined> {
  const server = createServer({ cert, key }, (socket) => socket.end());
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = address(server.address());
  // Always connects over the same address, so that a machine without IPv6 can check a certificate for ::1.
  const socket = connectTcp(port, "127.0.0.1");
  try {
    return await new Promise((resolve) => {
      connect({ socket, host, ...(ca === undefined ? {} : { ca }) }, () => resolve(undefined)).on(
        "error",
        (error) => resolve(`${"code" in error ? error.code : ""} ${error.message}`),
      );
    });
  } finally {
    socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

function address(value: AddressInfo | string | null): AddressInfo {
  if (value === null || typeof value === "string") throw new Error("the server does not listen on a port");
  return value;
}

describe("the development certificate", () => {
  it.each(["localhost", "127.0.0.1", "::1"])(
    "a development certificate is valid for %s when its CA is trusted",
    async (host) => {
      const { ca, ...pair } = await made(folder());
      expect(await complaint(pair, { host, ca })).toBeUndefined();
    },
  );

  it("a development certificate is rejected by clients that do not trust its CA, and for other names", async () => {
    const { ca, ...pair } = await made(folder());
    const stranger = await made(folder());
    expect(await complaint(pair, {})).toMatch("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    expect(await complaint(pair, { ca: stranger.ca })).toMatch("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    expect(await complaint(pair, { ca, host: "other.localhost" })).toMatch("ERR_TLS_CERT_ALTNAME_INVALID");
    expect(await complaint(pair, { ca, host: "127.0.0.2" })).toMatch("ERR_TLS_CERT_ALTNAME_INVALID");
  });

  it("a development certificate covers the requested host names and addresses", async () => {
    const authority = await createAuthority(Date.now());
    const pair = await issueCertificate(authority, ["alice.localhost", "127.0.0.9"], Date.now());
    const ca = authority.cert;
    expect(await complaint(pair, { ca, host: "alice.localhost" })).toBeUndefined();
    expect(await complaint(pair, { ca, host: "127.0.0.9" })).toBeUndefined();
    expect(await complaint(pair, { ca, host: "localhost" })).toMatch("ERR_TLS_CERT_ALTNAME_INVALID");
  });

  it("a development certificate lasts a year, its CA longer, and clocks that are hours behind accept both", async () => {
    const directory = folder();
    const old = await made(directory, daysAgo(364));
    expect(await complaint(old, { ca: old.ca })).toBeUndefined();
    const older = await made(directory, daysAgo(366));
    expect(await complaint(older, { ca: older.ca })).toMatch("CERT_HAS_EXPIRED");

    const ahead = await made(folder(), Date.now() + DAY / 2);
    expect(await complaint(ahead, { ca: ahead.ca })).toBeUndefined();

    const atItsEnd = await createAuthority(daysAgo(824));
    const last = await issueCertificate(atItsEnd, ["localhost"], Date.now());
    expect(await complaint(last, { ca: atItsEnd.cert })).toBeUndefined();
    const over = await createAuthority(daysAgo(826));
    const late = await issueCertificate(over, ["localhost"], Date.now());
    expect(await complaint(late, { ca: over.cert })).toMatch("CERT_HAS_EXPIRED");
  });

  it("a development certificate is issued for loopback names only", async () => {
    await expect(makeDevCertificates(folder(), Date.now(), ["example.com"])).rejects.toThrow(/loopback/);
  });

  it("a development certificate is valid for servers only", async () => {
    const { cert } = await made(folder());
    expect(new X509Certificate(cert).keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  });
});

describe("the development CA", () => {
  it("reissuing a certificate keeps the CA", async () => {
    const directory = folder();
    const first = await made(directory);
    const second = await made(directory);
    expect(second.ca).toBe(first.ca);
    expect(new X509Certificate(second.cert).serialNumber).not.toBe(
      new X509Certificate(first.cert).serialNumber,
    );
    expect(await complaint(second, { ca: first.ca })).toBeUndefined();
  });

  it("development CAs are distinguishable and can be trusted side by side", async () => {
    const [one, other] = [await made(folder()), await made(folder())];
    expect(new X509Certificate(one.ca).subject).not.toBe(new X509Certificate(other.ca).subject);
    const ca = [one.ca, other.ca];
    expect(await complaint(one, { ca })).toBeUndefined();
    expect(await complaint(other, { ca })).toBeUndefined();
  });

  it("a development certificate cannot issue other certificates", async () => {
    const { ca, ...pair } = await made(folder());
    const signed = await issueCertificate(pair, ["alice.localhost"], Date.now());
    const chain = { cert: signed.cert + pair.cert, key: signed.key };
    expect(await complaint(chain, { ca, host: "alice.localhost" })).toMatch(
      "key usage does not include certificate signing",
    );
  });

  it("the development CA cannot issue intermediate CAs", async () => {
    const authority = await createAuthority(Date.now());
    const under = await authorityUnder(authority);
    const signed = await issueCertificate(under, ["localhost"], Date.now());
    const chain = { cert: signed.cert + under.cert, key: signed.key };
    expect(await complaint(chain, { ca: authority.cert })).toMatch("PATH_LENGTH_EXCEEDED");
  });

  it("the development CA is recreated when it has expired or a file is missing", async () => {
    const directory = folder();
    const first = await made(directory, daysAgo(826));
    const second = await made(directory);
    expect(second.ca).not.toBe(first.ca);
    expect(await complaint(second, { ca: second.ca })).toBeUndefined();
    rmSync(join(directory, "dev-ca.pem"));
    const third = await made(directory);
    expect(await complaint(third, { ca: third.ca })).toBeUndefined();
  });
});

/** Another CA whose certificate was signed with the key of the first one. */
async function authorityUnder(first: PemPair): Promise<PemPair> {
  const under = await createAuthority(Date.now());
  const { subjectName, publicKey, extensions } = new ReadCertificate(under.cert);
  const pkcs8 = createPrivateKey(first.key).export({ type: "pkcs8", format: "der" });
  const p256 = { name: "ECDSA", namedCurve: "P-256" };
  const signed = await X509CertificateGenerator.create({
    subject: subjectName,
    issuer: new ReadCertificate(first.cert).subjectName,
    publicKey,
    signingKey: await webcrypto.subtle.importKey("pkcs8", pkcs8, p256, false, ["sign"]),
    extensions,
  });
  return { cert: `${signed.toString("pem")}\n`, key: under.key };
}
