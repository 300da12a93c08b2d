/** A certificate of this machine, for TLS servers. */
import { execFileSync } from "node:child_process";

export function makeCertificate({ cert, key }: { cert: string; key: string }): void {
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "1",
    ].concat(["-subj", "/CN=localhost", "-keyout", key, "-out", cert]),
    { stdio: "ignore" },
  );
}
