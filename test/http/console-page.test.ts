/** The files of the console: headers, validators, encodings, deep links, a proxy's prefix. */
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { consolePage } from "../../src/doors/console/index.js";
import { createServer } from "../../src/server/index.js";
import { call, type Harness, startServer } from "./harness.js";
import { captureSwarm } from "./swarm.js";

const PAGE =
  '<html data-base="{{base}}" data-root="{{root}}"><script src="{{base}}assets/main-1.js"></script>';
const SCRIPT = `export const text = "${"a".repeat(500)}";`;

let directory: string;
let harness: Harness;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mailroom-page-"));
  await mkdir(join(directory, "assets"));
  await writeFile(join(directory, "index.html"), PAGE);
  await writeFile(join(directory, "assets/main-1.js"), SCRIPT);
  await writeFile(join(directory, "assets/main-1.js.br"), brotliCompressSync(SCRIPT));
  await writeFile(join(directory, "assets/main-1.js.gz"), gzipSync(SCRIPT));
  await writeFile(join(directory, "secret"), "not a file of the page");
  harness = await startServer({ pages: [consolePage("/console", directory)] });
});
afterEach(async () => {
  await harness.close();
  await rm(directory, { recursive: true, force: true });
});

async function get(
  path: string,
  headers: Record<string, string> = {},
): Promise<Response & { bytes: Buffer }> {
  const response = await fetch(`${harness.url}${path}`, { headers, redirect: "manual" });
  return Object.assign(response, { bytes: Buffer.from(await response.arrayBuffer()) });
}

it("serves the page for every link, with addresses relative to it", async () => {
  for (const [path, base, root] of [
    ["/console/", "./", "../"],
    ["/console/tasks", "./", "../"],
    ["/console/tasks/a%2Fb?view=lanes", "../", "../../"],
    ["/console/all/x/y", "../../", "../../../"],
    ["/console/index.html", "./", "../"],
  ] as const) {
    const response = await get(path);
    expect(response.status).toBe(200);
    expect(response.bytes.toString()).toBe(PAGE.replaceAll("{{base}}", base).replaceAll("{{root}}", root));
    expect(response.headers.get("cache-control")).toBe("no-cache");
  }
  const redirected = await get("/console");
  expect([redirected.status, redirected.headers.get("location")]).toEqual([308, "console/"]);
});

it("allows no markup, script or request from elsewhere", async () => {
  for (const path of ["/console/", "/console/assets/main-1.js", "/console/assets/none.js"]) {
    const { headers } = await get(path);
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
        "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
        "require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  }
});

it("serves assets for good, in the encodings of the build, and says when they have not changed", async () => {
  const plain = await call(harness.url, "/console/assets/main-1.js");
  expect(plain.text).toBe(SCRIPT);
  expect(plain.headers).toMatchObject({
    "content-type": "text/javascript; charset=utf-8",
    "cache-control": "public, max-age=31536000, immutable",
    vary: "accept-encoding",
  });
  for (const [accepted, used] of [
    ["gzip, deflate, br", "br"],
    ["gzip", "gzip"],
    ["br;q=0, gzip", "gzip"],
    ["identity", undefined],
  ] as const) {
    const page = consolePage("/console", directory);
    const { headers, body = new Uint8Array() } = await page.handle({
      path: "assets/main-1.js",
      headers: { "accept-encoding": accepted },
    });
    expect(headers["content-encoding"]).toBe(used);
    const decode = {
      br: brotliDecompressSync,
      gzip: gunzipSync,
      none: (bytes: Uint8Array) => Buffer.from(bytes),
    };
    expect(decode[used ?? "none"](body).toString()).toBe(SCRIPT);
  }
  const etag = String(plain.headers.etag);
  const again = await get("/console/assets/main-1.js", { "if-none-match": `W/"x", ${etag}` });
  expect([again.status, again.bytes.length]).toEqual([304, 0]);
  const head = await fetch(`${harness.url}/console/`, { method: "HEAD" });
  expect(head.status).toBe(200);
});

it("serves nothing else", async () => {
  for (const path of [
    "/console/assets/none.js",
    "/console/assets/..%2Fsecret",
    "/console/assets/main-1.js.br",
    `/console/${"a/".repeat(40)}`,
  ]) {
    expect((await get(path)).status, path).toBe(404);
  }
  expect((await get("/console/secret")).bytes.toString()).not.toContain("not a file");
  expect((await call(harness.url, "/console/", { method: "POST", json: {} })).status).toBe(404);
});

it("is found by people who open the server, and not by programs", async () => {
  const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8", "sec-fetch-mode": "navigate" };
  const home = await call(harness.url, "/", { headers: browser });
  expect([home.status, home.headers.location]).toEqual([302, "console/"]);
  for (const headers of [{}, { accept: "text/html" }, { "sec-fetch-mode": "navigate" }, { accept: "*/*" }]) {
    const reply = await call(harness.url, "/", { headers });
    expect(reply.headers["content-type"]).toContain("application/json");
  }
});

it("is read again when it was built again", async () => {
  expect((await get("/console/")).bytes.toString()).toContain("main-1.js");
  await writeFile(join(directory, "index.html"), "new");
  await utimes(join(directory, "index.html"), 1, 1);
  expect((await get("/console/")).bytes.toString()).toBe("new");
  await rm(join(directory, "index.html"));
  expect((await get("/console/")).status).toBe(503);
});

it("is gone when it is switched off, and moves with its path", async () => {
  const options = { swarm: captureSwarm(), data: false, dev: true } as const;
  const log = { level: "silent" } as const;
  const off = await createServer({ ...options, settings: { console: { enabled: false }, log } });
  const moved = await createServer({ ...options, settings: { console: { path: "/ops/ui" }, log } });
  try {
    const offUrl = await off.listen({ port: 0 });
    expect(off.facts.console).toBeUndefined();
    for (const path of ["/console/", "/console/session"]) expect((await call(offUrl, path)).status).toBe(404);
    const movedUrl = await moved.listen({ port: 0 });
    expect(moved.facts.console).toBe(`${movedUrl}/ops/ui/`);
    expect((await call(movedUrl, "/ops/ui/session")).status).toBe(401);
    expect((await call(movedUrl, "/console/session")).status).toBe(404);
  } finally {
    await off.close(0);
    await moved.close(0);
  }
});
