/** Runs once, before any test: in CI it installs the browser and the proxy of the console's tests, if they are missing. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { findBrowser, findNginx } from "./console/find-programs.js";

export default function setup(): void {
  const missing = [
    ...(findBrowser() === undefined ? ["chromium", "fonts-dejavu-core"] : []),
    ...(findNginx() === undefined ? ["nginx"] : []),
  ];
  if (process.env.CI !== "true" || missing.length === 0) return;
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) return;
  const apt = (...args: readonly string[]) =>
    execFileSync("apt-get", ["-o", "DPkg::Lock::Timeout=120", "-q", ...args], { stdio: "ignore" });
  try {
    apt("update");
    apt("install", "-y", "--no-install-recommends", ...missing);
  } catch (error) {
    // The tests that need them fail with the reason.
    console.warn(`${missing.join(", ")} could not be installed: ${String(error)}`);
  }
}
