import type { Section } from "../declare.js";
import { truth } from "../kinds.js";

export function mapSettings(map: Section) {
  return {
    enabled: map.setting("enabled", { kind: truth, default: true, doc: "Whether there is MAP at `/map`." }),
    mail: map.setting("mail", {
      kind: truth,
      default: true,
      doc: "Whether there are conversations. Without them every `mail/*` method answers 10010.",
    }),
    isolate: map.setting("isolate", {
      kind: truth,
      default: false,
      doc: "Every caller has agents and conversations of its own, and does not notice those of others.",
    }),
  };
}
