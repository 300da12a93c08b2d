/** Requests to a local proxy: over HTTP/1.1 with Node, over HTTP/3 with a curl that supports it. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:https";

export interface Asking {
  readonly site?: string;
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly localAddress?: string;
  /** File with the trusted CAs. */
  readonly ca?: string;
  /** For endless answers: returns whether the text received so far is enough. */
  readonly enough?: (text: string) => boolean;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export type Ask = (path: string, asking?: Asking) => Promise<Answer>;

export function askByNode(port: number, authorities: string): Ask {
  return (path, asking = {}) => {
    const { site = "localhost", method = "GET", body, headers = {}, localAddress, ca = authorities } = asking;
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port,
          servername: site,
          path,
          method,
          ca: readFileSync(ca),
          agent: false,
          headers: { host: `${site}:${port}`, ...headers },
          ...(localAddress !== undefined && { localAddress }),
        },
        (response) => {
          let text = "";
          const finish = () => {
            resolve({ status: response.statusCode ?? 0, text });
            sent.destroy();
          };
          response.on("data", (chunk) => {
            text += String(chunk);
            if (asking.enough?.(text) === true) finish();
          });
          response.on("end", finish);
          response.on("error", reject);
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  };
}

export function speaksHttp3(curl: string): boolean {
  const { stdout } = spawnSync(curl, ["--version"], { encoding: "utf8" });
  return typeof stdout === "string" && stdout.includes("HTTP3");
}

/** HTTP/3 only: an answer in another version is an error. */
export function askByCurl(curl: string, port: number, authorities: string): Ask {
  return (path, asking = {}) => {
    const { site = "localhost", method = "GET", body, headers = {}, localAddress, ca = authorities } = asking;
    const words = [
      ...["--http3-only", "--silent", "--show-error", "--include", "--no-buffer", "--max-time", "30"],
      ...["--cacert", ca, "--resolve", `${site}:${port}:127.0.0.1`, "--request", method],
      ...Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]),
      ...(localAddress === undefined ? [] : ["--interface", localAddress]),
      // Without `Expect`, because the server sends no interim answer.
      ...(body === undefined ? [] : ["--header", "expect:", "--data-binary", "@-"]),
      `https://${site}:${port}${path}`,
    ];
    const child = spawn(curl, words, { stdio: ["pipe", "pipe", "pipe"] });
    return new Promise((resolve, reject) => {
      let seen = "";
      let complaints = "";
      const read = (): Answer | undefined => {
        const end = seen.indexOf("\r\n\r\n");
        if (end < 0) return undefined;
        const [, version, status] = /^HTTP\/(\S+) (\d+)/u.exec(seen) ?? [];
        assert.equal(version, "3", seen.slice(0, end));
        return { status: Number(status), text: seen.slice(end + 4) };
      };
      child.stdout.on("data", (chunk) => {
        seen += String(chunk);
        const answer = read();
        if (answer === undefined || asking.enough?.(answer.text) !== true) return;
        resolve(answer);
        child.kill();
      });
      child.stderr.on("data", (chunk) => {
        complaints += String(chunk);
      });
      child.on("error", reject);
      child.on("close", () => {
        // An answer that arrives before the whole request was sent counts, whatever curl reports about the rest.
        const answer = read();
        if (answer === undefined) reject(new Error(`${path}: ${complaints}`));
        else resolve(answer);
      });
      child.stdin.on("error", () => undefined);
      child.stdin.end(body);
    });
  };
}
