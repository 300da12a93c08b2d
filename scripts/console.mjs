/**
 * Builds the console into `dist/console`: bundle, hashed names, brotli and gzip copies, a manifest, licenses.
 * Fails when the page outgrows its budget. With `--watch` it builds again after every change.
 */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, context } from "esbuild";

const root = resolve(import.meta.dirname, "..");
const out = join(root, "dist/console");
const assets = join(out, "assets");

/** Bytes after brotli. Everything that the first screen loads, and each part that loads later. */
const FIRST_LOAD = 60_000;
const LATER = 25_000;

const PACKAGES = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

/** Our own modules do nothing when they are loaded, so what the page does not use of them is left out. */
const withoutSideEffects = {
  name: "without-side-effects",
  setup(plugin) {
    plugin.onResolve({ filter: /^\./ }, async (args) => {
      if (args.pluginData === "resolving" || !args.importer.startsWith(join(root, "src"))) return undefined;
      if (args.path.endsWith(".css")) return undefined;
      const { path, errors } = await plugin.resolve(args.path, {
        importer: args.importer,
        resolveDir: args.resolveDir,
        kind: args.kind,
        pluginData: "resolving",
      });
      return { path, errors, sideEffects: false };
    });
  },
};

const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

const options = {
  absWorkingDir: root,
  entryPoints: { main: "src/console/main.tsx" },
  outdir: assets,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  platform: "browser",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  sourcemap: "linked",
  metafile: true,
  legalComments: "none",
  define: { CONSOLE_VERSION: JSON.stringify(version) },
  loader: { ".svg": "file" },
  plugins: [withoutSideEffects],
  logLevel: "warning",
};

/** The page. The server fills in where the console (`{{base}}`) and the server itself (`{{root}}`) are, seen from the URL. */
function page(main, css, imports) {
  const preloads = imports.map((path) => `<link rel="modulepreload" href="{{base}}assets/${path}">\n`);
  return `<!doctype html>
<html lang="en" data-base="{{base}}" data-root="{{root}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Mailroom</title>
<link rel="icon" href="{{base}}assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{{base}}assets/${css}">
<script type="module" src="{{base}}assets/${main}"></script>
${preloads.join("")}</head>
<body><div id="app"></div><noscript>The console needs JavaScript.</noscript></body>
</html>
`;
}

async function licenses() {
  const parts = [];
  for (const name of PACKAGES) {
    const folder = join(root, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    const text = file === undefined ? "" : await readFile(join(folder, file), "utf8");
    parts.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
  }
  return parts.join(`\n${"-".repeat(80)}\n\n`);
}

function compressed(data) {
  const br = brotliCompressSync(data, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: data.length },
  });
  return { br, gz: gzipSync(data, { level: 9 }) };
}

async function finish({ metafile }) {
  const entry = Object.entries(metafile.outputs).find(([, { entryPoint }]) =>
    entryPoint?.endsWith("main.tsx"),
  );
  if (entry === undefined) throw new Error("the bundle has no entry");
  const [mainPath, { cssBundle }] = entry;
  /** The entry and everything that it imports at once. */
  const first = new Set([mainPath, ...(cssBundle === undefined ? [] : [cssBundle])]);
  for (const path of first) {
    for (const { path: next, kind } of metafile.outputs[path]?.imports ?? []) {
      if (kind === "import-statement") first.add(next);
    }
  }
  const imports = [...first].filter((path) => path !== mainPath && path !== cssBundle);
  const index = page(
    basename(mainPath),
    basename(cssBundle ?? ""),
    imports.map((path) => basename(path)),
  );
  await writeFile(join(out, "index.html"), index);
  await writeFile(join(assets, "icon.svg"), await readFile(join(root, "src/console/icon.svg")));
  await writeFile(join(out, "licenses.txt"), await licenses());

  const sizes = new Map();
  for (const path of [...Object.keys(metafile.outputs), relative(root, join(assets, "icon.svg"))]) {
    if (path.endsWith(".map")) continue;
    const data = await readFile(join(root, path));
    const { br, gz } = compressed(data);
    await writeFile(join(root, `${path}.br`), br);
    await writeFile(join(root, `${path}.gz`), gz);
    sizes.set(path, { bytes: data.length, brotli: br.length, gzip: gz.length });
  }

  const brotli = (path) => sizes.get(path)?.brotli ?? 0;
  const firstLoad =
    compressed(Buffer.from(index)).br.length + [...first].reduce((sum, path) => sum + brotli(path), 0);
  const manifest = {
    version,
    main: basename(mainPath),
    first_load: firstLoad,
    files: Object.fromEntries(
      [...sizes].map(([path, size]) => [basename(path), { ...size, first: first.has(path) }]),
    ),
  };
  await writeFile(join(out, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);

  const over = [];
  if (firstLoad > FIRST_LOAD) over.push(`the first load is ${firstLoad} bytes, more than ${FIRST_LOAD}`);
  for (const [path, size] of sizes) {
    if (!first.has(path) && size.brotli > LATER)
      over.push(`${basename(path)} is ${size.brotli} bytes, more than ${LATER}`);
  }
  if (over.length > 0) throw new Error(`the console is over its budget: ${over.join("; ")}`);
  return manifest;
}

await rm(out, { recursive: true, force: true });
await mkdir(assets, { recursive: true });
if (process.argv.includes("--watch")) {
  const watching = await context({
    ...options,
    plugins: [
      ...options.plugins,
      {
        name: "finish",
        setup(plugin) {
          plugin.onEnd(async (result) => {
            if (result.metafile === undefined) return;
            const { first_load } = await finish(result).catch((error) => ({ first_load: error.message }));
            console.log(`built ${relative(dirname(root), out)}, first load ${first_load}`);
          });
        },
      },
    ],
  });
  await watching.watch();
} else {
  const manifest = await finish(await build(options));
  if (process.argv.includes("--sizes")) console.log(JSON.stringify(manifest, null, 2));
}
