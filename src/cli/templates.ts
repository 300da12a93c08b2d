/** The files of a new project. */

export function projectFiles(swarm: string): Readonly<Record<string, string>> {
  return {
    "swarms.json": swarmFile(swarm),
    "actions.mjs": ACTIONS,
    "mail.toml": settings(swarm),
    "README.md": readme(swarm),
  };
}

function swarmFile(name: string): string {
  const swarm = {
    name,
    version: "0.1.0",
    description: "A front desk, and a clerk who knows the opening hours.",
    entrypoint: "desk",
    agents: [
      {
        name: "desk",
        description: "Talks to people. Follows a script; give it a model instead by changing its factory.",
        factory: "mail:scripted",
        comm_targets: ["clerk"],
        enable_entrypoint: true,
        can_complete_tasks: true,
        agent_params: {
          rules: [
            {
              note: "A question about a day: ask the clerk. The named group 'day' is stored.",
              when: { from_type: ["user", "admin"], body: { matches: "\\b(?<day>\\w+day)\\b" } },
              do: [{ send_request: { target: "clerk", subject: "Opening hours", body: "{{match.day}}" } }],
            },
            {
              note: "The clerk answers: the task is complete.",
              when: { from: "clerk" },
              do: [{ task_complete: "On {{remember.day}}: {{answers.clerk}}" }],
            },
            { do: [{ task_complete: "Ask me when we are open on a certain day." }] },
          ],
        },
      },
      {
        name: "clerk",
        description: "Looks things up with an action.",
        factory: "mail:scripted",
        comm_targets: ["desk"],
        actions: ["opening_hours"],
        agent_params: {
          rules: [
            { when: { result: "opening_hours" }, do: [{ reply: "{{result}}" }] },
            { do: [{ act: { name: "opening_hours", args: { day: "{{body}}" } } }] },
          ],
        },
      },
    ],
    actions: [
      {
        name: "opening_hours",
        description: "Returns when the shop is open on a day of the week.",
        parameters: {
          type: "object",
          properties: { day: { type: "string", description: "A day of the week, in English." } },
          required: ["day"],
          additionalProperties: false,
        },
        function: "module:./actions.mjs#openingHours",
        idempotent: true,
      },
    ],
  };
  return `${JSON.stringify([swarm], undefined, 2)}\n`;
}

const ACTIONS = `// What agents can do besides writing mail. An action gets the arguments that the agent chose (already checked
// against the schema in swarms.json) and a context; what it returns is shown to the agent.

const HOURS = { saturday: "10 to 16", sunday: "closed" };

export function openingHours({ day }) {
  return HOURS[day.toLowerCase()] ?? "9 to 18";
}
`;

function settings(swarm: string): string {
  return `# Settings of the server. 'npx mailroom config' shows all of them, and where each value came from.
# Flags come before environment variables, and those before this file.

[server]
port = 8000
# host = "0.0.0.0"          # every address of this machine, not only 127.0.0.1
# data = "./data"           # default: ./.mailroom/${swarm}

[server.swarm]
source = "swarms.json"
name = "${swarm}"

[server.settings]
# task_message_limit = 15   # steps before a task is made to finish; 0 for no limit
`;
}

function readme(swarm: string): string {
  return `# ${swarm}

A swarm for Mailroom: a front desk that asks a clerk, and a clerk that looks things up.

    npx mailroom validate swarms.json
    npx mailroom server --dev
    npx mailroom client http://127.0.0.1:8000 message "When are you open on Sunday?"

| file | what it is |
| --- | --- |
| \`swarms.json\` | the agents: names, comm targets and behavior |
| \`actions.mjs\` | their actions |
| \`mail.toml\` | settings of the server |

\`--dev\` needs no tokens and accepts local connections only. Without it, the first start prints an admin token, and
\`npx mailroom token create --role user --id ann\` creates more. All data is in \`.mailroom/\`: stop the server
while a task runs, start it again, and the task continues.
`;
}
