import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  CONVERSATION_STATUSES,
  HISTORY_ACCESS,
  MAP_ERRORS,
  PARTICIPANT_ROLES,
  PERMISSION_FLAGS,
} from "../../src/conversations/index.js";

it("[MAP-G-2] the documentation has every role, permission, status, visibility and error", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/conversations.md"), "utf8");
  const words = [
    ...PARTICIPANT_ROLES,
    ...PERMISSION_FLAGS,
    ...HISTORY_ACCESS,
    ...CONVERSATION_STATUSES,
    ...Object.keys(MAP_ERRORS),
    "historyAccess",
    "joinPolicy",
    "map.history_on_join",
    "map.joining",
  ];
  expect(words.filter((word) => !page.includes(`\`${word}`) && !page.includes(`${word}\``))).toEqual([]);
  for (const word of ["actAs", "replayFrom"]) expect(page).toContain(word);
  for (const type of ["all", "participants", "role", "private"]) expect(page).toContain(`type: "${type}"`);
  for (const { code } of Object.values(MAP_ERRORS))
    expect(page).toMatch(new RegExp(`^\\|.*${code}.*\\|`, "m"));
});
