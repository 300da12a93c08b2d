/** The rules of a scripted agent, as written in `agent_params` of a swarm file. */
import { z } from "zod";
import { MessageType } from "../../mail/index.js";

const oneOrMore = <T extends z.ZodType>(item: T) => z.union([item, z.array(item).min(1).readonly()]);

const TextTest = z
  .union([
    z.string().min(1),
    z.strictObject({
      contains: z.string().min(1).exactOptional(),
      equals: z.string().exactOptional(),
      matches: z.string().min(1).exactOptional(),
      flags: z
        .string()
        .regex(/^[imsu]*$/, "may contain i, m, s and u")
        .exactOptional(),
    }),
  ])
  .meta({
    description:
      "A text that must occur (in any case), or a test: contains, equals, matches (a regular expression).",
  });
export type TextTest = z.infer<typeof TextTest>;

const When = z.strictObject({
  type: oneOrMore(MessageType).exactOptional(),
  from: oneOrMore(z.string().min(1)).exactOptional(),
  from_type: oneOrMore(z.enum(["user", "admin", "agent", "system"])).exactOptional(),
  subject: oneOrMore(TextTest).exactOptional(),
  body: oneOrMore(TextTest).exactOptional(),
  question: oneOrMore(TextTest).exactOptional(),
  result: z.union([z.string().min(1), z.literal(true), z.literal(false)]).exactOptional(),
  ok: z.boolean().exactOptional(),
  answered: oneOrMore(z.string().min(1)).exactOptional(),
  waiting: z.boolean().exactOptional(),
  remembers: oneOrMore(z.string().min(1)).exactOptional(),
  times: z
    .union([
      z.int().min(1),
      z.strictObject({ min: z.int().min(1).exactOptional(), max: z.int().min(1).exactOptional() }),
    ])
    .exactOptional(),
});
export type When = z.infer<typeof When>;

const Letter = z.strictObject({ target: z.string().min(1), subject: z.string(), body: z.string() });

/** One verb, named like the MAIL tool where there is one. */
const StepVerbs = z.strictObject({
  reply: z.union([z.string(), z.strictObject({ subject: z.string(), body: z.string() })]).exactOptional(),
  send_request: Letter.exactOptional(),
  send_response: Letter.exactOptional(),
  send_interrupt: Letter.exactOptional(),
  send_broadcast: z.strictObject({ subject: z.string(), body: z.string() }).exactOptional(),
  task_complete: z.string().exactOptional(),
  act: z
    .strictObject({ name: z.string().min(1), args: z.record(z.string(), z.json()).default({}) })
    .exactOptional(),
  await_message: z.union([z.literal(true), z.string()]).exactOptional(),
  acknowledge_broadcast: z.union([z.literal(true), z.string()]).exactOptional(),
  ignore_broadcast: z.union([z.literal(true), z.string()]).exactOptional(),
  fail: z.string().min(1).exactOptional(),
});

const Step = StepVerbs.refine((step) => Object.keys(step).length === 1, {
  error: `a step has exactly one verb: ${Object.keys(StepVerbs.shape).join(", ")}`,
  // A mistyped verb is reported once, not also as a step without a verb.
  when: ({ issues }) => issues.length === 0,
});
export type Step = z.infer<typeof Step>;

export const ScriptedRule = z.strictObject({
  note: z.string().exactOptional(),
  when: When.default({}),
  do: z.array(Step).min(1),
});
export type ScriptedRule = z.infer<typeof ScriptedRule>;
/** The input form: a rule without `when` always matches. */
export type ScriptedRuleInput = z.input<typeof ScriptedRule>;

export const ScriptedParams = z.strictObject({ rules: z.array(ScriptedRule).min(1) });
export type ScriptedParams = z.infer<typeof ScriptedParams>;
