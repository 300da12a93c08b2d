import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";

it("the client library can be bundled for a browser without Node built-ins", async () => {
  const entry = fileURLToPath(new URL("../../src/client/index.ts", import.meta.url));
  // For the platform `browser` esbuild fails on every import of a Node built-in.
  const { metafile, errors } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  expect(errors).toEqual([]);
  const packages = Object.keys(metafile.inputs)
    .filter((path) => path.includes("node_modules/"))
    .map((path) => path.split("node_modules/").at(-1)?.split("/")[0]);
  expect([...new Set(packages)].sort()).toEqual(["eventsource-parser", "ws", "zod"]);
  // What the package has for browsers: an empty file instead of its WebSocket.
  expect(Object.keys(metafile.inputs).filter((path) => path.includes("/ws/"))).toEqual([
    expect.stringMatching(/ws\/browser\.js$/),
  ]);
});
