/** Runs once, before any test: in CI it installs the browser of the console's tests, if there is none. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { findBrowser } from "./console/find-browser.js";

export default function setup(): void {
  if (process.env.CI !== "true" || findBrowser() !== undefined) return;
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) return;
  const apt = (...args: readonly string[]) =>
    execFileSync("apt-get", ["-o", "DPkg::Lock::Timeout=120", "-q", ...args], { stdio: "ignore" });
  try {
    apt("update");
    apt("install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core");
  } catch (error) {
    // The tests that need it fail with the reason.
    console.warn(`the browser could not be installed: ${String(error)}`);
  }
}
