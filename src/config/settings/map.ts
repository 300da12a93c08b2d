import type { Section } from "../declare.js";
import { duration, text, truth } from "../kinds.js";

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
    summaryModel: map.optional("summary_model", {
      kind: text,
      doc: "The model that writes summaries, as `openai/gpt-5-mini`; keys and proxy as for agents. Without one they are put together from sentences that were said.",
    }),
    summaryTimeout: map.setting("summary_timeout", {
      kind: duration({ min: 1 }),
      default: 30_000,
      doc: "How long that model may take, all attempts together. Then the summary is put together from what was said.",
    }),
  };
}
