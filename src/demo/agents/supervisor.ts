/**
 * The bundled supervisor: forwards a question to the matching specialists and completes the task with their answers.
 */
import type { ScriptedRuleInput } from "../../agents/index.js";
import { ADVICE_TOPIC, ANALYSIS_TOPIC, MATH_TOPIC, WEATHER_TOPIC } from "./patterns.js";

interface Specialty {
  /** Pattern of the texts that this specialist answers. */
  readonly topic: string;
  readonly subject: string;
  readonly request: string;
  /** Description for users who ask about something else. */
  readonly offer: string;
}

const SPECIALTIES: ReadonlyMap<string, Specialty> = new Map([
  [
    "weather",
    {
      topic: WEATHER_TOPIC,
      subject: "Forecast needed",
      request: "{{body}}\n\n(Please answer what concerns the weather.)",
      offer: "the weather (“What will the weather be in Kyoto tomorrow?”)",
    },
  ],
  [
    "math",
    {
      topic: MATH_TOPIC,
      subject: "Calculation needed",
      request: "{{body}}\n\n(Please answer what there is to calculate.)",
      offer: "arithmetic (“What is 15% of 340?”)",
    },
  ],
  [
    "analyst",
    {
      topic: ANALYSIS_TOPIC,
      subject: "Analysis needed",
      request: "{{body}}\n\n(Please analyze this.)",
      offer: "figures (“Analyze 12, 15, 9 and 22.”)",
    },
  ],
  [
    "consultant",
    {
      topic: ADVICE_TOPIC,
      subject: "Advice needed",
      request: "{{body}}\n\n(Please advise.)",
      offer: "decisions (“Should we open a second office?”)",
    },
  ],
]);

/** @param commTargets the supervisor's comm targets; it uses the specialists among them. */
export function supervisorRules(commTargets: readonly string[]): readonly ScriptedRuleInput[] {
  const team = [...SPECIALTIES.keys()].filter((name) => commTargets.includes(name));
  // Larger groups first: the first matching rule runs, and it must ask every matching specialist.
  const groups = subsets(team).sort((a, b) => b.length - a.length);
  return [
    {
      note: "step limit reached: finish with the answers so far",
      when: { from_type: "system", subject: "::maximum_steps_reached::" },
      do: [{ task_complete: "I ran out of steps before I had all the answers." }],
    },
    {
      note: "an agent or action failed",
      when: { from_type: "system", result: false },
      do: [{ task_complete: "I am sorry, I could not finish this. {{body}}" }],
    },
    {
      note: "other specialists have not answered yet",
      when: { type: "response", waiting: true },
      do: [{ await_message: "waiting for the other answers" }],
    },
    ...groups.map((group) => answerRule(group)),
    ...groups.map((group) => askRule(group)),
    { when: { type: "broadcast" }, do: [{ ignore_broadcast: "nothing for me to do" }] },
    {
      note: "no specialist matches",
      when: { type: ["request", "interrupt"] },
      do: [{ task_complete: offers(team) }],
    },
    { note: "an unexpected answer", do: [{ task_complete: "{{body}}" }] },
  ];
}

function askRule(group: readonly string[]): ScriptedRuleInput {
  const known = group.flatMap((name) => {
    const specialty = SPECIALTIES.get(name);
    return specialty === undefined ? [] : [{ name, specialty }];
  });
  return {
    note: `a question for ${group.join(" and ")}`,
    when: {
      type: ["request", "interrupt"],
      body: known.map(({ specialty }) => ({ matches: specialty.topic })),
    },
    do: known.map(({ name, specialty }) => ({
      send_request: { target: name, subject: specialty.subject, body: specialty.request },
    })),
  };
}

function answerRule(group: readonly string[]): ScriptedRuleInput {
  return {
    note: `${group.join(" and ")} answered`,
    when: { type: "response", waiting: false, answered: group },
    do: [{ task_complete: group.map((name) => `{{answers.${name}}}`).join(" ") }],
  };
}

function offers(team: readonly string[]): string {
  const list = team.flatMap((name) => SPECIALTIES.get(name)?.offer ?? []);
  if (list.length === 0)
    return "I am a small scripted supervisor without specialists, so I cannot help with that.";
  return `I cannot help with that. You can ask me about ${list.join(" or ")}.`;
}

/** Returns every non-empty subset. The team has four members at most. */
function subsets(names: readonly string[]): string[][] {
  const [first, ...rest] = names;
  if (first === undefined) return [];
  const without = subsets(rest);
  return [[first], ...without.map((group) => [first, ...group]), ...without];
}
