/**
 * Builds the program and the library into `dist`: JavaScript with esbuild here, declarations with tsc afterwards.
 *
 * All entry points are built together, so that they share chunks and every class exists once. What the server loads at its
 * start is bundled: to load it from several hundred files costs as much processor time as everything else that a start
 * does. Native modules, packages with state that others share, and the large SDKs that are loaded on use stay imports.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");

const ENTRIES = {
  index: "src/index.ts",
  "server/index": "src/server/index.ts",
  "client/index": "src/client/index.ts",
  "mail/public": "src/mail/public.ts",
  "testing/index": "src/testing/index.ts",
  "cli/main": "src/cli/main.ts",
};

/** With everything that they depend on, except `EXTERNAL`. */
const BUNDLED = new Set([
  "@fastify/cors",
  "ajv",
  "ajv-formats",
  "commander",
  "eventsource-parser",
  "fastify",
  "ipaddr.js",
  "jose",
  "jsep",
  "lru-cache",
  "picocolors",
  "smol-toml",
  "uuidv7",
  "ws",
  "zod",
]);
const EXTERNAL = new Set([
  "@opentelemetry/api",
  "better-sqlite3",
  "bufferutil",
  "pino",
  "prom-client",
  "tsx",
  "undici",
  "utf-8-validate",
]);

const packageOf = (path) => path.split("/", path.startsWith("@") ? 2 : 1).join("/");

const packages = {
  name: "packages",
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path, importer, kind }) => {
      if (kind === "entry-point") return undefined;
      const name = packageOf(path);
      const isOurs = !importer.includes(`${join("/", "node_modules")}/`);
      return EXTERNAL.has(name) || (isOurs && !BUNDLED.has(name)) ? { path, external: true } : undefined;
    });
  },
};

rmSync(DIST, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: Object.entries(ENTRIES).map(([out, path]) => ({ in: path, out })),
  outdir: DIST,
  chunkNames: "chunks/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  sourcemap: true,
  sourcesContent: false,
  legalComments: "none",
  plugins: [packages],
  metafile: true,
  logLevel: "warning",
});

// CommonJS packages call `require` for Node's own modules. On the first line, so that source maps stay right.
const REQUIRE =
  'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url); ';
for (const path of Object.keys(metafile.outputs)) {
  const file = join(ROOT, path);
  if (!file.endsWith(".js")) continue;
  const text = readFileSync(file, "utf8");
  if (/\b__require = /.test(text)) writeFileSync(file, REQUIRE + text);
}

writeFileSync(join(DIST, "THIRD-PARTY-LICENSES.txt"), licensesOf(Object.keys(metafile.inputs)));

/** The licenses of what is bundled: they require that their text comes with it. */
function licensesOf(inputs) {
  const folders = new Set(
    inputs.flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
  );
  const texts = [...folders].sort().map((folder) => {
    const about = JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8"));
    const file = readdirSync(join(ROOT, folder)).find((name) => /^(licen[cs]e|copying)/i.test(name));
    const text =
      file === undefined ? `License: ${about.license}` : readFileSync(join(ROOT, folder, file), "utf8");
    return `${about.name} ${about.version}\n\n${text.trim()}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
