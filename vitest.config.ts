import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

const source = (path: string) => resolve(import.meta.dirname, "src", path);

export default defineConfig({
  resolve: {
    // Tests that import the package by name get the source. test/package and test/examples use what is built.
    alias: [
      { find: /^agent-mailroom$/, replacement: source("index.ts") },
      { find: /^agent-mailroom\/(client|server|testing)$/, replacement: source("$1/index.ts") },
      { find: "agent-mailroom/mail", replacement: source("mail/public.ts") },
    ],
  },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "conformance/**/*.test.ts"],
    globalSetup: ["test/global-setup.ts"],
    setupFiles: ["test/setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
