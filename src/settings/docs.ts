/** Writes `docs/configuration.md` from the declarations. */
import { type SettingRow, type SettingsCatalog, settingRows, tableOf, tablesOf } from "./catalog.js";

const INTRODUCTION = `# Configuration

<!-- Written by scripts/config-docs.ts from the modules' settings.ts files: change those, then run it. -->

Every setting has a default. Change it in a file, in the environment or on the command line. A flag overrides the
environment, the environment overrides the file, and the file overrides the default. \`mailroom config\` prints the
values in force and where each came from.

The file is the one named by \`--config\`, otherwise the one named by \`MAIL_CONFIG_PATH\`, otherwise \`mail.toml\` in the
working directory if it exists. Its format is [TOML](https://toml.io):

\`\`\`toml
[server]
port = 9000

[server.swarm]
source = "swarms.json"

[auth.jwt]
jwks_url = "https://id.example.com/.well-known/jwks.json"
audience = "mailroom"
\`\`\`

- An unknown key, table or \`MAILROOM_*\` variable is an error; the message suggests the nearest name.
- Times are seconds, or texts such as \`"500ms"\`, \`"90s"\`, \`"15m"\`, \`"12h"\`, \`"7d"\`. Sizes are bytes, or texts such as \`"512kb"\`, \`"4mb"\`.
- Paths in the file are relative to the file, all others to the working directory.
- In the environment, commas separate the values of a list, a table is \`name=value,name=value\`, and an empty variable counts as not set.
- A secret in the file can be \`"\${VARIABLE}"\`, which reads it from the environment. \`mailroom config\` never shows secrets.
`;

export function configurationDocs(catalog: SettingsCatalog): string {
  const rows = settingRows(catalog);
  return [INTRODUCTION, ...[...tablesOf(catalog)].map((table) => tableDocs(catalog, table, rows))].join("\n");
}

function tableDocs({ tables }: SettingsCatalog, table: string, rows: readonly SettingRow[]): string {
  return [
    `## \`[${table}]\``,
    "",
    ...(tables[table] === undefined ? [] : [tables[table], ""]),
    "| Key | Value | Default | Environment | Flag | |",
    "| --- | --- | --- | --- | --- | --- |",
    ...rows.filter(({ key }) => tableOf(key) === table).map((row) => rowDocs(row, table)),
    "",
  ].join("\n");
}

function rowDocs(
  { key, kind, default: standard = "", env, flag, doc, secret }: SettingRow,
  table: string,
): string {
  const isProse = standard.includes("`") || standard.includes(" ");
  const flags = flag === undefined ? [] : [...flag.names, ...(flag.short === undefined ? [] : [flag.short])];
  const cells = [
    code(key.slice(table.length + 1)),
    secret ? `${kind} (secret)` : kind,
    isProse ? standard : code(standard),
    env.map(code).join(", "),
    flags.map(code).join(", "),
    doc,
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}
