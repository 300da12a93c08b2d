/** The bundled specialists: weather, math, analyst and consultant, as rules. */
import type { ScriptedRuleInput } from "../../agents/index.js";
import { DAY_AGAIN, EXPRESSION, OPTIONAL_DAY, PLACE, PLACE_IN_SMALL_LETTERS } from "./patterns.js";

const ASKED = { type: ["request", "interrupt"] } as const;

/** Rules for mail that contains no request. */
const REST: readonly ScriptedRuleInput[] = [
  { when: { type: "broadcast" }, do: [{ ignore_broadcast: "nothing for me to do" }] },
  { do: [{ await_message: "waiting for a request" }] },
];

/** @param action name of the agent's forecast action. */
export function weatherRules(action: string): readonly ScriptedRuleInput[] {
  const day = { matches: OPTIONAL_DAY, flags: "isu" };
  const lookUp = (place: string): ScriptedRuleInput["do"] => [
    { act: { name: action, args: { location: place, date: "{{match.day|today}}" } } },
  ];
  return [
    { when: { result: action, ok: true }, do: [{ reply: "The forecast for {{result}}." }] },
    { when: { result: action, ok: false }, do: [{ reply: "I could not get a forecast: {{result}}." }] },
    { when: { ...ASKED, body: [{ matches: PLACE, flags: "u" }, day] }, do: lookUp("{{match.place}}") },
    { when: { ...ASKED, body: [{ matches: PLACE_IN_SMALL_LETTERS }, day] }, do: lookUp("{{match.place}}") },
    {
      when: { ...ASKED, body: { matches: DAY_AGAIN }, remembers: "place" },
      do: lookUp("{{remember.place}}"),
    },
    { when: ASKED, do: [{ reply: "For the weather I need a place, for example “in Kyoto tomorrow”." }] },
    ...REST,
  ];
}

/** @param action name of the agent's calculator action. */
export function mathRules(action: string): readonly ScriptedRuleInput[] {
  return [
    { when: { result: action, ok: true }, do: [{ reply: "{{remember.expression}} = {{result}}." }] },
    {
      when: { result: action, ok: false },
      do: [{ reply: "I could not calculate {{remember.expression}}: {{result}}." }],
    },
    {
      when: { ...ASKED, body: { matches: EXPRESSION } },
      do: [{ act: { name: action, args: { expression: "{{match.expression}}" } } }],
    },
    {
      when: ASKED,
      do: [{ reply: "I need something to calculate, for example “15% of 340” or “2 * (3 + 4)”." }],
    },
    ...REST,
  ];
}

/** @param action name of the agent's statistics action, if any. */
export function analystRules(action: string | undefined): readonly ScriptedRuleInput[] {
  const withNumbers: readonly ScriptedRuleInput[] =
    action === undefined
      ? []
      : [
          { when: { result: action, ok: true }, do: [{ reply: "The figures: {{result}}." }] },
          { when: { result: action, ok: false }, do: [{ reply: "I could not analyze this: {{result}}." }] },
          {
            when: { ...ASKED, body: { matches: "(?<![\\w-])\\d" } },
            do: [{ act: { name: action, args: { text: "{{body}}" } } }],
          },
        ];
  return [
    ...withNumbers,
    {
      when: ASKED,
      do: [
        {
          reply: "Before I can analyze this I need the figures: what was measured, when, and in which unit.",
        },
      ],
    },
    ...REST,
  ];
}

export function consultantRules(): readonly ScriptedRuleInput[] {
  return [
    {
      when: ASKED,
      do: [
        {
          reply:
            "Before you decide, answer three questions: what would have to be true for this to work, what does it " +
            "cost to find out, and what do you do if it fails? Then start with the smallest step that can be undone.",
        },
      ],
    },
    ...REST,
  ];
}
