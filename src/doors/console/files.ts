/** The built page: read into memory once, served with validators and in the encodings that the build made. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import type { Page, PageRequest, PageResponse } from "../../extension/index.js";

/** The built page, seen from the bundles of the package and from the sources. */
const BUILT = ["../../dist/console/", "../../../dist/console/"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
const INDEX = "index.html";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};

/** Text of agents, peers and users must never become markup or script, whatever the page does with it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
  vary: "accept-encoding",
} as const;

/** Deeper links do not exist, and each depth is a version of the page in memory. */
const DEEPEST = 16;

interface StoredFile {
  readonly bytes: Uint8Array;
  readonly br?: Uint8Array;
  readonly gzip?: Uint8Array;
  readonly type: string;
  readonly etag: string;
}

interface BuiltPage {
  readonly changed: number;
  readonly files: ReadonlyMap<string, StoredFile>;
  readonly index: string;
  /** The page as it is linked from each depth. */
  readonly versions: Map<number, StoredFile>;
}

/** @param path where the console is: `/console` */
export function consolePage(path: string, directory = builtDirectory()): Page {
  let built: Promise<BuiltPage | undefined> | undefined;
  return {
    path,
    home: true,
    async handle(request) {
      const changed = await changedAt(directory);
      // A page that was built again while the server runs is read again.
      if ((await built)?.changed !== changed)
        built = changed === undefined ? undefined : read(directory, changed);
      const page = await built;
      return page === undefined ? notBuilt() : respond(page, request, path);
    },
  };
}

function builtDirectory(): string {
  return BUILT.find((directory) => existsSync(directory)) ?? join(...BUILT.slice(-1));
}

function respond(page: BuiltPage, request: PageRequest, path: string): PageResponse {
  const file = page.files.get(request.path);
  if (file !== undefined && request.path !== INDEX) {
    // Names of assets contain a hash of their content.
    const lasting = request.path.startsWith("assets/");
    return send(file, request, lasting ? "public, max-age=31536000, immutable" : "no-cache");
  }
  const depth = request.path.split("/").length - 1;
  if (request.path.startsWith("assets/") || depth > DEEPEST) return notFound();
  return send(versionFor(page, depth, path), request, "no-cache");
}

/** Addresses are relative, so that the page works below a path of a proxy. */
function versionFor({ index, versions }: BuiltPage, depth: number, path: string): StoredFile {
  const known = versions.get(depth);
  if (known !== undefined) return known;
  const base = depth === 0 ? "./" : "../".repeat(depth);
  const root = "../".repeat(depth + path.split("/").length - 1);
  const bytes = Buffer.from(index.replaceAll("{{base}}", base).replaceAll("{{root}}", root));
  const version = {
    bytes,
    br: brotliCompressSync(bytes),
    gzip: gzipSync(bytes),
    type: TYPES[".html"] ?? "text/html",
    etag: etagOf(bytes),
  };
  versions.set(depth, version);
  return version;
}

function send(file: StoredFile, { headers }: PageRequest, cache: string): PageResponse {
  const shared = { ...HEADERS, etag: file.etag, "cache-control": cache };
  if (
    headers["if-none-match"]?.split(",").some((tag) => tag.trim().replace(/^W\//, "") === file.etag) === true
  )
    return { status: 304, headers: shared };
  const accepted = String(headers["accept-encoding"] ?? "");
  const { br, gzip } = file;
  const encoded =
    br !== undefined && /\bbr\b(?!;\s*q=0(?:\.0*)?(?:,|$))/.test(accepted)
      ? { body: br, encoding: { "content-encoding": "br" } }
      : gzip !== undefined && /\bgzip\b(?!;\s*q=0(?:\.0*)?(?:,|$))/.test(accepted)
        ? { body: gzip, encoding: { "content-encoding": "gzip" } }
        : { body: file.bytes, encoding: {} };
  return {
    status: 200,
    headers: { ...shared, "content-type": file.type, ...encoded.encoding },
    body: encoded.body,
  };
}

function notFound(): PageResponse {
  return text(404, "Not Found\n");
}

function notBuilt(): PageResponse {
  return text(503, "The console has not been built: run 'npm run build'.\n");
}

function text(status: number, body: string): PageResponse {
  return {
    status,
    headers: { ...HEADERS, "content-type": "text/plain; charset=utf-8" },
    body: Buffer.from(body),
  };
}

/** When the page was built; nothing if it was not. */
async function changedAt(directory: string): Promise<number | undefined> {
  try {
    return (await stat(join(directory, INDEX))).mtimeMs;
  } catch {
    return undefined;
  }
}

async function read(directory: string, changed: number): Promise<BuiltPage | undefined> {
  const names = (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(directory, join(parentPath, name)).replaceAll("\\", "/"));
  const bytesOf = async (name: string) =>
    names.includes(name) ? readFile(join(directory, name)) : undefined;
  const files = new Map<string, StoredFile>();
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const [bytes, br, gzip] = await Promise.all([name, `${name}.br`, `${name}.gz`].map(bytesOf));
    if (bytes === undefined) continue;
    files.set(name, {
      bytes,
      ...(br !== undefined && { br }),
      ...(gzip !== undefined && { gzip }),
      type,
      etag: etagOf(bytes),
    });
  }
  const index = files.get(INDEX);
  if (index === undefined) return undefined;
  return { changed, files, index: Buffer.from(index.bytes).toString("utf8"), versions: new Map() };
}

function etagOf(bytes: Uint8Array): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
}
