import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge"];

/** Chromium or Chrome: as `MAILROOM_BROWSER` says, else on the path. */
export function findBrowser(): string | undefined {
  const named = process.env.MAILROOM_BROWSER;
  if (named !== undefined && named !== "") return named;
  return findProgram(NAMES);
}

/** nginx on the path, or where Debian installs it. */
export function findNginx(): string | undefined {
  return findProgram(["nginx"], ["/usr/sbin"]);
}

function findProgram(names: readonly string[], more: readonly string[] = []): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), ...more];
  return names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((path) => existsSync(path));
}
