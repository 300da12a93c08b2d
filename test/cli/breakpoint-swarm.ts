/** A swarm file for tests: an agent that asks a person, and a slow one. */
export const ASKING_SWARM = JSON.stringify([
  {
    name: "asking",
    version: "1.0.0",
    entrypoint: "desk",
    breakpoint_tools: ["ask_human"],
    agents: [
      {
        name: "desk",
        factory: "mail:scripted",
        comm_targets: ["clerk"],
        enable_entrypoint: true,
        can_complete_tasks: true,
        actions: ["ask_human"],
        agent_params: {
          rules: [
            { when: { result: "ask_human" }, do: [{ task_complete: "They said: {{result}}" }] },
            { when: { from_type: "user", body: "fail" }, do: [{ fail: "on purpose" }] },
            {
              when: { from_type: ["user", "admin"], body: "ask" },
              do: [{ act: { name: "ask_human", args: { question: "Umbrella?" } } }],
            },
            {
              when: { from_type: ["user", "admin"], body: "wait" },
              do: [{ send_request: { target: "clerk", subject: "Slow", body: "take your time" } }],
            },
            { do: [{ task_complete: "You said: {{body}}" }] },
          ],
        },
      },
      { name: "clerk", remote: true, comm_targets: ["desk"] },
    ],
    actions: [
      {
        name: "ask_human",
        description: "Asks a person.",
        parameters: { type: "object", properties: { question: { type: "string" } }, required: ["question"] },
      },
    ],
  },
]);
