/** Faults found in model agents, MCP and A2A, each as the rule that forbids it. */
import { chapter } from "./chapter.js";

export const AGENTS_FINDINGS = [
  ...chapter("agents", "what providers accept", [
    [
      "AGENTS-T-2",
      "Reasoning is sent back only after the prompt that it was written for; corrections and the list of tools stay in the prompt, and rejected reasoning is left out for good.",
    ],
    [
      "AGENTS-T-5",
      "Effort is requested in the form that the model accepts, and leaves tokens for the answer.",
    ],
    ["AGENTS-T-6", "Reasoning of OpenAI-compatible servers is sent back with its calls."],
    ["AGENTS-T-8", "Nothing is said after the results of calls unless there is a message."],
    ["AGENTS-T-9", "A message precedes each answer in a prompt, also when a broadcast was ignored."],
  ]),
  ...chapter("agents", "what providers do", [
    ["AGENTS-T-11", "A stream that is asked for again marks its earlier pieces as invalid."],
    ["AGENTS-T-14", "A model of a distrusted swarm is called through the outbound guard."],
    ["AGENTS-T-15", "A refusal, or text that a model insists on, is its answer to the user."],
    [
      "AGENTS-T-16",
      "Calls with one key of one provider share its limits, return at different times, and a used up quota is not tried again.",
    ],
    ["AGENTS-T-19", "An answer that was cut off at its limit of tokens is not delivered."],
    ["AGENTS-T-20", "A provider's answer has a limited size."],
    [
      "AGENTS-T-21",
      "A provider's error is logged in its own words without the key, and users read it in ours.",
    ],
  ]),
  ...chapter("agents", "turns and tasks", [
    ["AGENTS-T-1", "Models that number their calls do not share idempotency keys."],
    [
      "AGENTS-T-3",
      "Compaction keeps the request and the results that the model is about to read; a single result takes up a limited share of the window.",
    ],
    ["AGENTS-T-17", "The usage of a failed turn is journaled, with that of its interrupted attempts."],
    [
      "AGENTS-T-18",
      "The limit on turns of an agent without mail from others is a documented setting that the failure names.",
    ],
    ["AGENTS-T-23", "Nothing that stands after `task_complete` in an answer is carried out."],
  ]),
  ...chapter("agents", "other programs", [
    ["AGENTS-T-10", "Results that a remote agent reads cannot forge a message."],
    ["AGENTS-T-12", "A2A 0.3 works in both directions."],
    ["AGENTS-T-13", "An A2A answer with a file arrives; the file is described."],
  ]),
  ...chapter("agents", "MCP servers of others", [
    [
      "AGENTS-T-4",
      "A schema of an MCP server is checked in linear time or not at all. A tool that cannot be used is left out with a warning; the server and the swarm load.",
    ],
    [
      "AGENTS-T-7",
      "A tool's own error is the result of the call, without the output of the server's process.",
    ],
    [
      "AGENTS-T-22",
      "Progress extends the time limit of an MCP call, a changed list of tools is reported, and rejected credentials are named.",
    ],
  ]),
];
