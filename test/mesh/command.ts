/** Runs the command line in this process, which saves starting a process for each command. */
import pico from "picocolors";
import { main } from "../../src/cli/main.js";

export async function meshCommand(
  words: readonly string[],
  { json = true }: { readonly json?: boolean } = {},
): Promise<{ code: number; out: string; notes: string }> {
  let out = "";
  let notes = "";
  const code = await main(["mesh", ...words, ...(json ? ["--json"] : [])], {
    env: {},
    stdin: process.stdin,
    colors: pico.createColors(false),
    interactive: false,
    columns: 100,
    out: (line = "") => {
      out += `${line}\n`;
    },
    write: (text) => {
      out += text;
    },
    note: (line = "") => {
      notes += `${line}\n`;
    },
    json: (value) => {
      out += JSON.stringify(value);
    },
  });
  return { code, out, notes };
}
