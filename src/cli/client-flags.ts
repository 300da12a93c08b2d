/**
 * `mailroom client URL --token T whoami`: what follows the URL belongs to the client's command, whose flags are its own.
 * But people write the client's flags there too, and the token even at the end. These are put before the URL, where
 * the parser looks for them.
 */

const WITH_VALUE: ReadonlySet<string> = new Set([
  "--token",
  "--api-key",
  "-c",
  "--config",
  "-t",
  "--timeout",
]);
/** No command of the client has a flag of this name. */
const ANYWHERE: ReadonlySet<string> = new Set(["--token", "--api-key"]);

export function clientFlagsFirst(argv: readonly string[]): string[] {
  const at = argv.findIndex((word) => !word.startsWith("-"));
  if (argv[at] !== "client") return [...argv];
  const before = argv.slice(0, at + 1);
  const words = argv.slice(at + 1);
  const flags = leadingFlags(words);
  const [url, ...rest] = words.slice(flags.length);
  if (url === undefined || url === "--") return [...argv];
  const between = leadingFlags(rest);
  const { taken, left } = takeAnywhere(rest.slice(between.length));
  return [...before, ...flags, ...between, ...taken, url, ...left];
}

function leadingFlags(words: readonly string[]): readonly string[] {
  let end = 0;
  for (let word = words[end]; word?.startsWith("-") && word !== "--"; word = words[end]) {
    end += WITH_VALUE.has(word) ? 2 : 1;
  }
  return words.slice(0, end);
}

function takeAnywhere(words: readonly string[]): { taken: string[]; left: string[] } {
  const taken: string[] = [];
  const left: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    // What follows `--` is text.
    if (word === "--") return { taken, left: [...left, ...words.slice(index)] };
    const name = word.split("=", 1)[0] ?? "";
    if (!ANYWHERE.has(name)) left.push(word);
    else if (name !== word) taken.push(word);
    else taken.push(...words.slice(index, ++index + 1));
  }
  return { taken, left };
}
