/** Rewrites arguments into the form that commander parses. */
import { clientSettings } from "../client/settings.js";
import { catalog } from "../server/index.js";
import { settingFlags } from "../settings/index.js";

export function normalizeArgv(argv: readonly string[]): string[] {
  return clientFlagsFirst(longFlags(versionAsCommand(argv)));
}

/** `mailroom --version` is `mailroom version`. After a command the flag would be the command's own. */
function versionAsCommand(argv: readonly string[]): string[] {
  const command = argv.findIndex((word) => !word.startsWith("-"));
  return argv.map((word, index) =>
    word === "--version" && (command === -1 || index < command) ? "version" : word,
  );
}

/**
 * The reference has flags with one dash and two letters (REF-22), which commander reads as two flags. They are
 * replaced by their long form, and only for the commands that have them.
 */
function longFlags(argv: readonly string[]): string[] {
  const command = argv.find((word) => !word.startsWith("-"));
  if (command !== "server" && command !== "client") return [...argv];
  const long = new Map(
    settingFlags(catalog, command).flatMap(({ names, short = "" }) =>
      short.length > 2 ? [[short, names.at(-1) ?? short]] : [],
    ),
  );
  // Everything after `--` is text.
  const end = argv.indexOf("--") === -1 ? argv.length : argv.indexOf("--");
  return argv.map((word, index) => (index < end ? (long.get(word) ?? word) : word));
}

/**
 * `mailroom client URL --token T whoami`: arguments after the URL belong to the client's command, which has its own
 * flags. Users also write the client's flags there, and the token at the end. They are moved before the URL, where
 * commander expects them.
 */
function clientFlagsFirst(argv: readonly string[]): string[] {
  const at = argv.findIndex((word) => !word.startsWith("-"));
  if (argv[at] !== "client") return [...argv];
  const before = argv.slice(0, at + 1);
  const words = argv.slice(at + 1);
  const flags = leadingFlags(words);
  const [url, ...rest] = words.slice(flags.length);
  if (url === undefined || url === "--") return [...argv];
  const between = leadingFlags(rest);
  const { taken, left } = extractTokens(rest.slice(between.length));
  return [...before, ...flags, ...between, ...taken, url, ...left];
}

function leadingFlags(words: readonly string[]): readonly string[] {
  const withValue = new Set(["-c", "--config"]);
  for (const { names, short, value } of settingFlags(catalog, "client")) {
    if (value !== undefined) for (const name of [...names, short ?? names[0]]) withValue.add(name);
  }
  let end = 0;
  for (let word = words[end]; word?.startsWith("-") && word !== "--"; word = words[end]) {
    end += withValue.has(word) ? 2 : 1;
  }
  return words.slice(0, end);
}

/** No command of the client has a flag with these names, so they can be anywhere. */
const TOKEN_FLAGS: readonly string[] = clientSettings.declarations.token.flag?.names ?? [];

function extractTokens(words: readonly string[]): { taken: string[]; left: string[] } {
  const taken: string[] = [];
  const left: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--") return { taken, left: [...left, ...words.slice(index)] };
    const name = word.split("=", 1)[0] ?? "";
    if (!TOKEN_FLAGS.includes(name)) left.push(word);
    else if (name !== word) taken.push(word);
    else taken.push(...words.slice(index, ++index + 1));
  }
  return { taken, left };
}
