/** Faults that were found in Mailroom, each as the rule that forbids it, by module. */
import { AGENTS_FINDINGS } from "./agents.js";
import { ENGINE_FINDINGS } from "./engine.js";
import { MAIL_FINDINGS } from "./mail.js";
import { MAP_FINDINGS } from "./map.js";
import { MESH_FINDINGS } from "./mesh.js";

export const FINDINGS = [
  ...ENGINE_FINDINGS,
  ...MAP_FINDINGS,
  ...MAIL_FINDINGS,
  ...MESH_FINDINGS,
  ...AGENTS_FINDINGS,
];
