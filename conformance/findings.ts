/** Faults that were found in the engine and its store, each as the rule that forbids it. */
import type { Requirement } from "./requirement.js";

type Row = readonly [id: string, rule: string];

function chapter(name: string, rows: readonly Row[]): Requirement[] {
  return rows.map(([id, rule]) => ({
    id,
    level: "ours",
    part: "engine",
    rule,
    source: `Mailroom, findings: ${name}`,
  }));
}

export const FINDINGS: readonly Requirement[] = [
  ...chapter("effects that were lost, repeated or mixed up", [
    ["ENGINE-A-1", "Nobody is given the answer to another message: what is told is what the journal says."],
    [
      "ENGINE-A-2",
      "An action's idempotency key belongs to one call of one turn of one task, and stays the same when it is run again.",
    ],
    [
      "ENGINE-A-3",
      "A write that fails for a while costs time only: no known result is forgotten, nothing runs twice, nobody who waits is turned away.",
    ],
    ["ENGINE-A-4", "A new definition reaches any number of running tasks without disturbing one of them."],
    ["ENGINE-A-5", "Closing twice is closing once: the second call waits for the first."],
    ["ENGINE-A-6", "A turn that outlives any number of orderly restarts is not taken for a deadly one."],
    [
      "ENGINE-A-7",
      "An answer or a message that cannot be written as JSON is refused alone; its neighbors notice nothing.",
    ],
    ["ENGINE-A-8", "A task whose time is up starts no further action."],
    [
      "ENGINE-A-9",
      "A message that is acknowledged is never removed with its task, however slow the store reads.",
    ],
  ]),
  ...chapter("consistency and isolation", [
    ["ENGINE-B-1", "There is one picture of a task, and none of a task that was removed."],
    ["ENGINE-B-2", "Nobody reads what is not on disk, least of all what never will be."],
    ["ENGINE-B-3", "What the process remembers of an answer is what it would remember after a restart."],
    ["ENGINE-B-4", "What was under way in a task that had ended is taken up by the next start, unasked."],
    ["ENGINE-B-5", "Too many new messages cost those who are at work neither their turns nor their results."],
    ["ENGINE-B-6", "Callers whose agents hang keep nobody else from a first turn."],
    ["ENGINE-B-7", "The limit on running tasks holds for every way in which a task comes to run."],
    [
      "ENGINE-B-8",
      "Two writers on one file: an append with a stale number is refused as stale, one with the right number is written.",
    ],
    ["ENGINE-B-9", "No action begins once its task is cancelled."],
  ]),
  ...chapter("hangs, stops and leaks", [
    [
      "ENGINE-C-1",
      "A part that fails on what is durable is reported, and all others still act on it; a task that grows too large fails by name.",
    ],
    ["ENGINE-C-2", "Many messages to one task cost time in proportion to their number."],
    ["ENGINE-C-3", "A start with many unfinished tasks leaves the event loop to others meanwhile."],
    [
      "ENGINE-C-4",
      "A store that has failed for good is reported once, and nothing is tried against it any more.",
    ],
    ["ENGINE-C-5", "Mail for a remote agent that never comes keeps no ended task in memory."],
    ["ENGINE-C-6", "Closing ends every live stream and every wait; a step of an agent that is held returns."],
    [
      "ENGINE-C-7",
      "Tasks that cannot be removed now keep no others from removal, and a sweep leaves the event loop to others.",
    ],
    ["ENGINE-C-8", "A snapshot that cannot be used is passed over: the journal alone gives the state."],
    ["ENGINE-C-9", "A listener for problems that throws itself keeps no task from going on."],
  ]),
  ...chapter("what was said and what was touched", [
    ["ENGINE-D-1", "A database of another program is refused without a byte of it being changed."],
    ["ENGINE-D-2", "A data directory that is deleted or replaced under a running process ends the writing."],
    ["ENGINE-D-3", "The stream of a message ends with that message's round, not with an earlier one's."],
    ["ENGINE-D-4", "An agent may answer with anything that can be awaited."],
    ["ENGINE-D-5", "A damaged file is refused with its name and what to do about it."],
    ["ENGINE-D-6", "That a process ended is only said of a process that ended."],
  ]),
];
