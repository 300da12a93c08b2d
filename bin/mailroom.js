#!/usr/bin/env node
// The built program. Everything else is in src/cli.
import { existsSync } from "node:fs";

const built = new URL("../dist/cli/main.js", import.meta.url);
if (existsSync(built)) {
  const { main } = await import(built.href);
  process.exitCode = await main(process.argv.slice(2));
} else {
  process.stderr.write("error: mailroom is not built yet\n  run 'npm run build' first\n");
  process.exitCode = 1;
}
