/** `docs/configuration.md`, from the table of settings. */
import type { SectionRow, SettingRow } from "./declare.js";
import { describeSettings } from "./load.js";

const INTRODUCTION = `# Configuration

<!-- Written by scripts/config-docs.ts from src/config/settings: change those, then run it. -->

Everything has a default. What differs from it can be said in a file, in the environment or on the command line; a flag
counts before the environment, that before the file, that before the default. \`mailroom config\` prints what is in force
and where each value came from.

The file is the one that \`--config\` names, else the one that \`MAIL_CONFIG_PATH\` names, else \`mail.toml\` in the working
directory, if there is one. It is [TOML](https://toml.io):

\`\`\`toml
[server]
port = 9000

[server.swarm]
source = "swarms.json"

[auth.jwt]
jwks_url = "https://id.example.com/.well-known/jwks.json"
audience = "mailroom"
\`\`\`

- A key, table or \`MAILROOM_*\` variable that does not exist is an error, with a suggestion.
- Times are seconds, or texts such as \`"500ms"\`, \`"90s"\`, \`"15m"\`, \`"12h"\`, \`"7d"\`. Sizes are bytes, or texts such as \`"512kb"\`, \`"4mb"\`.
- Paths in the file are relative to the file, others to the working directory.
- In the environment a list has commas between its values, a table is \`word=value,word=value\`, and an empty variable counts as not set.
- A secret may stand in the file as \`"\${VARIABLE}"\`, and is then taken from the environment. \`mailroom config\` never shows it.
`;

export function configurationDocs(): string {
  const { rows, sections } = describeSettings();
  return [INTRODUCTION, ...sections.map((section) => sectionDocs(section, rows))].join("\n");
}

function sectionDocs({ key, doc }: SectionRow, rows: readonly SettingRow[]): string {
  const own = rows.filter((row) => row.key.slice(0, row.key.lastIndexOf(".")) === key);
  return [
    `## \`[${key}]\``,
    "",
    doc,
    "",
    "| Key | Value | Default | Environment | Flag | |",
    "| --- | --- | --- | --- | --- | --- |",
    ...own.map((row) => rowDocs(row, key)),
    "",
  ].join("\n");
}

function rowDocs(
  { key, kind, default: standard, env, flag, doc, secret }: SettingRow,
  table: string,
): string {
  const shown =
    standard === undefined
      ? ""
      : standard.includes("`") || standard.includes(" ")
        ? standard
        : code(standard);
  const flags = flag === undefined ? [] : [...flag.names, ...(flag.short === undefined ? [] : [flag.short])];
  const cells = [
    code(key.slice(table.length + 1)),
    secret ? `${kind} (secret)` : kind,
    shown,
    env.map(code).join(", "),
    flags.map(code).join(", "),
    doc,
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}
