/** The official conformance package, in both roles. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { ASKING_SWARM } from "../../cli/breakpoint-swarm.js";
import { served } from "../../kit/served.js";

const require = createRequire(import.meta.url);
const PROGRAM = require.resolve("@modelcontextprotocol/conformance/dist/index.js");
const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));

async function conformance(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
  // The program writes its results to the working directory.
  const cwd = await mkdtemp(join(tmpdir(), "mcp-conformance-"));
  try {
    const child = spawn(process.execPath, ["--import", at("./register.mjs"), PROGRAM, ...args], { cwd });
    let output = "";
    child.stdout.on("data", (chunk: unknown) => (output += String(chunk)));
    child.stderr.on("data", (chunk: unknown) => (output += String(chunk)));
    const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
    return { code, output };
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

it("the server passes the scenarios for what it offers", { timeout: 120_000 }, async () => {
  await using server = await served(ASKING_SWARM);
  const { code, output } = await conformance(
    "server",
    "--url",
    `${server.url}/mcp`,
    "--expected-failures",
    at("./expected-failures.yml"),
  );
  expect(output).toMatch(/✓ server-initialize: 1 passed/);
  expect(output).toMatch(/✓ dns-rebinding-protection: 2 passed/);
  expect(code, output).toBe(0);
});

const CLIENT = `${process.execPath} --import ${import.meta.resolve("tsx")} ${at("./client.ts")}`;

it.each(["initialize", "tools_call"])(
  "the client passes the scenario %s",
  { timeout: 120_000 },
  async (scenario) => {
    const args = ["--command", CLIENT, "--scenario", scenario, "--timeout", "60000"];
    const { code, output } = await conformance("client", ...args);
    expect(output).toContain("OVERALL: PASSED");
    expect(code, output).toBe(0);
  },
);

it("the client resumes a stream that the server closed", { timeout: 120_000 }, async () => {
  const args = ["--command", CLIENT, "--scenario", "sse-retry", "--timeout", "60000"];
  const { output } = await conformance("client", ...args);
  // The scenario also judges the time until then, which a busy machine does not keep.
  expect(output).toMatch(/client-sse-graceful-reconnect\].*SUCCESS/);
  expect(output).toMatch(/client-sse-last-event-id\s*\].*SUCCESS/);
});
