/** The demonstration's planner: asks for the forecast, then asks a person before it books anything. */
import { defineAction } from "../../actions/index.js";
import { type DefinedAgent, defineAgent } from "../../swarm/index.js";

/** A breakpoint of the demonstration swarm: its result is a person's answer. */
export const ASK_PERSON = "ask_person";

const askPerson = defineAction({
  name: ASK_PERSON,
  description: "Asks a person, and waits for the answer.",
  parameters: {
    type: "object",
    properties: { question: { type: "string" }, place: { type: "string" }, price: { type: "string" } },
    required: ["question"],
  },
  run: () => "the swarm does not define this tool as a breakpoint, so no person was asked",
});

const PLACE = "Oslo";

export function plannerAgent(): DefinedAgent {
  return defineAgent({
    name: "planner",
    description: "Plans outings, and asks before it books.",
    enableEntrypoint: true,
    canCompleteTasks: true,
    commTargets: ["weather"],
    actions: [askPerson],
    run(mail) {
      const answer = mail.resultOf(askPerson);
      if (answer !== undefined) {
        const agreed = /^\W*(?:y|yes|ok|okay|sure|go|please|do)\b/i.test(
          answer.content.replace(/^SUCCESS: /, ""),
        );
        mail.complete(
          agreed
            ? `The picnic in ${PLACE} is booked (not really: this is a demonstration).`
            : "Nothing is booked.",
        );
        return;
      }
      const forecast = mail.answerFrom("weather");
      if (forecast !== undefined) {
        mail.act(askPerson, {
          question: `${forecast} Shall I book the picnic place by the lake for tomorrow?`,
          place: `${PLACE}, Sognsvann`,
          price: "200 kr, not refundable",
        });
        return;
      }
      if (mail.fromType === "system") mail.complete(`I could not plan this: ${mail.body}`);
      else mail.request("weather", "Forecast for a picnic", `What will the weather be in ${PLACE} tomorrow?`);
    },
  });
}
