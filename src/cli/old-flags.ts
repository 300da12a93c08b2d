/**
 * The reference has flags of one dash and two letters (mail.md 8.8), which today's parsers read as two flags. They are
 * put into their long form before anything is parsed, and only where the reference has them.
 */
const OLD_FLAGS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  server: { "-rf": "--swarm-registry" },
  client: { "-ak": "--api-key" },
};

export function modernFlags(argv: readonly string[]): string[] {
  const at = argv.findIndex((word) => !word.startsWith("-"));
  const table = OLD_FLAGS[argv[at] ?? ""];
  if (table === undefined) return [...argv];
  // What follows `--` is not ours to change.
  const end = argv.indexOf("--") === -1 ? argv.length : argv.indexOf("--");
  return argv.map((word, index) => (index < end ? (table[word] ?? word) : word));
}
