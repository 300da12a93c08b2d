/** Faults found in MAIL and federation, each as the rule that forbids it. */
import { chapter } from "./chapter.js";

export const MAIL_FINDINGS = [
  ...chapter("federation", "questions between swarms", [
    [
      "MAIL-G-1",
      "An answer that arrives before the outbox has recorded the delivery counts as the answer, and proves the delivery.",
    ],
    [
      "MAIL-G-2",
      "An agent that consults others continues to work for the agent that asked: answers, text and failures go there, also with several askers at once.",
    ],
    [
      "MAIL-G-3",
      "Broadcasts and interrupts to other swarms are awaited like requests, from each recipient by itself.",
    ],
    [
      "MAIL-G-4",
      "A message to all agents of a server of the reference, which does not know that address, goes to its entrypoint.",
    ],
    [
      "MAIL-G-5",
      "The end of a task reaches every swarm that was asked, also those that the owner's server does not notify.",
    ],
    ["MAIL-G-6", "A swarm that never accepted a task is not told of its end."],
    [
      "MAIL-G-7",
      "A proxy's 502 or 504 counts as a lost connection, and a server of the reference that has forgotten a task gets it again.",
    ],
  ]),
  ...chapter("server", "what clients of the reference expect", [
    ["MAIL-G-8", "A server lists its own URL, also without `public_url`."],
    ["MAIL-G-10", "The example program of the documentation gets a useful answer, word for word."],
    [
      "MAIL-G-11",
      "Every bundled agent uses a model when one is configured and its key is set, and its script otherwise.",
    ],
    [
      "MAIL-G-14",
      "A swarm that is registered without a token uses the variable that is set for it, over HTTP as on the command line.",
    ],
    ["MAIL-G-15", "Routes without authentication are limited per address by default."],
    ["MAIL-G-16", "Unknown fields in wrappers and messages of other swarms are ignored."],
    ["MAIL-G-17", "A message with `resume_from` to a running task is a further message."],
    [
      "MAIL-G-18",
      "Names of subswarms, files with one swarm and answers to breakpoints have the reference's forms, too.",
    ],
  ]),
];
