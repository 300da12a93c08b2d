/** The command line in this process, which saves starting one for each of very many questions. */
import pico from "picocolors";
import { main } from "../../src/cli/main.js";

export async function meshCommand(words: readonly string[]): Promise<{ code: number; out: string }> {
  let out = "";
  const code = await main(["mesh", ...words, "--json"], {
    env: {},
    stdin: process.stdin,
    colours: pico.createColors(false),
    interactive: false,
    columns: 100,
    out: (line = "") => {
      out += `${line}\n`;
    },
    note: () => undefined,
    json: (value) => {
      out += JSON.stringify(value);
    },
  });
  return { code, out };
}
