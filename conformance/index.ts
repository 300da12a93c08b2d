import { AGENT_REQUIREMENTS } from "./agents.js";
import { FINDINGS } from "./findings/index.js";
import { MAIL_REQUIREMENTS } from "./mail.js";
import { MAP_REQUIREMENTS } from "./map.js";
import { MESH_REQUIREMENTS } from "./mesh.js";
import type { Requirement } from "./requirement.js";

/** Every rule that Mailroom must satisfy. */
export const REQUIREMENTS: readonly Requirement[] = [
  ...MAIL_REQUIREMENTS,
  ...MAP_REQUIREMENTS,
  ...MESH_REQUIREMENTS,
  ...AGENT_REQUIREMENTS,
  ...FINDINGS,
];
