/**
 * A real nginx with the `location` of `docs/console.md`. In CI the set-up installs it; a missing one is a failure there,
 * and elsewhere the test is skipped and says so.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { onTestFinished } from "vitest";
import { freePort } from "../kit/free-port.js";
import { findNginx } from "./find-programs.js";

export const NGINX = findNginx();
if (NGINX === undefined) {
  const words = "there is no nginx on the path: the test of the console below a proxy needs one";
  if (process.env.CI === "true") throw new Error(words);
  console.warn(`skipped: ${words}`);
}

/** The configuration that the documentation shows. */
async function documentedLocation(): Promise<string> {
  const guide = await readFile(resolve(import.meta.dirname, "../../docs/console.md"), "utf8");
  const block = /```nginx\n([\s\S]*?)```/.exec(guide)?.[1];
  if (block === undefined) throw new Error("docs/console.md has no configuration for nginx");
  return block;
}

/** Serves the server at `target` below `/mail`. Resolves with the prefixed address, without a slash at the end. */
export async function openNginx(target: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mailroom-nginx-"));
  const port = await freePort();
  const location = (await documentedLocation()).replaceAll("http://127.0.0.1:8000", target);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join("\n");
  const file = join(folder, "nginx.conf");
  await writeFile(
    file,
    `daemon off; master_process off; worker_processes 1; pid ${folder}/pid; error_log stderr error;
    events {}
    http {
      access_log off;
      ${temporary}
      server { listen 127.0.0.1:${port}; ${location} }
    }`,
  );
  const child = spawn(NGINX ?? "nginx", ["-p", folder, "-c", file, "-e", "stderr"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let words = "";
  child.stderr.on("data", (chunk) => {
    words += String(chunk);
  });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await ended;
    await rm(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}/mail`;
  while (true) {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${words}`);
    const answers = await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answers) return url;
    await new Promise((done) => setTimeout(done, 50));
  }
}
