/** `mailroom register`: registers `mailroom client` as the handler of `swarm://` links. */
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { EXIT, type ExitCode } from "../exit.js";
import type { CommonOptions } from "../options.js";
import type { Terminal } from "../terminal.js";

export interface RegisterOptions extends CommonOptions {
  readonly print?: boolean;
}

const DESKTOP_FILE = "mailroom-swarm.desktop";

export async function runRegister(options: RegisterOptions, terminal: Terminal): Promise<ExitCode> {
  const script = process.argv[1] ?? "mailroom";
  const entry = desktopEntry(process.execPath, script);
  if (process.platform !== "linux" || options.print === true) {
    const text = process.platform === "linux" ? entry : instructions(process.platform, script);
    if (options.json === true) terminal.json({ platform: process.platform, registered: false, text });
    else terminal.out(text.trimEnd());
    return EXIT.ok;
  }
  const directory = join(terminal.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "applications");
  const file = join(directory, DESKTOP_FILE);
  await mkdir(directory, { recursive: true });
  await writeFile(file, entry);
  const known = await promisify(execFile)("xdg-mime", [
    "default",
    DESKTOP_FILE,
    "x-scheme-handler/swarm",
  ]).then(
    () => true,
    () => false,
  );
  if (options.json === true) terminal.json({ platform: "linux", registered: known, file });
  else {
    terminal.out(`written: ${file}`);
    terminal.out(
      known
        ? "swarm:// links now open in 'mailroom client'"
        : `xdg-mime failed: run 'xdg-mime default ${DESKTOP_FILE} x-scheme-handler/swarm' yourself`,
    );
  }
  return EXIT.ok;
}

/** Quotes arguments as the Desktop Entry Specification requires. */
function desktopEntry(node: string, script: string): string {
  const quote = (text: string) => `"${text.replace(/["`$\\]/g, "\\$&").replace(/%/g, "%%")}"`;
  return `[Desktop Entry]
Type=Application
Name=Mailroom
Comment=Opens swarm:// links
Exec=${quote(node)} ${quote(script)} client %u
Terminal=true
NoDisplay=true
MimeType=x-scheme-handler/swarm;
`;
}

function instructions(platform: string, script: string): string {
  return platform === "darwin"
    ? `macOS opens links only in applications: make one with Script Editor that runs\n  node ${script} client "$URL"\nand give it the URL scheme 'swarm' in its Info.plist (CFBundleURLTypes).`
    : `Add these keys to the registry:\n  HKEY_CURRENT_USER\\Software\\Classes\\swarm  "URL Protocol" = ""\n  HKEY_CURRENT_USER\\Software\\Classes\\swarm\\shell\\open\\command  = node "${script}" client "%1"`;
}
