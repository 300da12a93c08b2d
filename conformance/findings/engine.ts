/** Faults found in the engine and its store, each as the rule that forbids it. */
import { chapter } from "./chapter.js";

export const ENGINE_FINDINGS = [
  ...chapter("engine", "effects that were lost, repeated or mixed up", [
    [
      "ENGINE-A-1",
      "A caller never receives the answer to another message: answers are read from the journal.",
    ],
    [
      "ENGINE-A-2",
      "An action's idempotency key belongs to one call of one turn of one task, and stays the same when the action runs again.",
    ],
    [
      "ENGINE-A-3",
      "A temporary write failure only costs time: no known result is lost, nothing runs twice, no waiting caller is rejected.",
    ],
    ["ENGINE-A-4", "A new definition reaches any number of running tasks without disturbing one of them."],
    ["ENGINE-A-5", "A second close waits for the first."],
    [
      "ENGINE-A-6",
      "A turn that outlives any number of orderly restarts is not suspected of crashing the process.",
    ],
    [
      "ENGINE-A-7",
      "An answer or a message that cannot be written as JSON is rejected alone; others in its group are written.",
    ],
    ["ENGINE-A-8", "A task whose time limit has passed starts no further action."],
    ["ENGINE-A-9", "An acknowledged message is never removed with its task, however slowly the store reads."],
  ]),
  ...chapter("engine", "consistency and isolation", [
    ["ENGINE-B-1", "A task has one in-memory state, and a removed task has none."],
    ["ENGINE-B-2", "Readers see only durable entries."],
    ["ENGINE-B-3", "An answer in memory equals the answer after a restart."],
    ["ENGINE-B-4", "Work left open in a task that had ended is recovered by the next start."],
    ["ENGINE-B-5", "Too many new messages cost running tasks neither their turns nor their results."],
    ["ENGINE-B-6", "Callers whose agents hang do not keep others from a first turn."],
    ["ENGINE-B-7", "The limit on running tasks applies to every transition to running."],
    [
      "ENGINE-B-8",
      "Two writers on one file: an append with a stale number is rejected as stale, one with the right number is written.",
    ],
    ["ENGINE-B-9", "No action starts once its task is cancelled."],
  ]),
  ...chapter("engine", "hangs, stops and leaks", [
    [
      "ENGINE-C-1",
      "A reactor that fails on a durable entry is reported, and all others still run; a task that grows too large fails with that reason.",
    ],
    ["ENGINE-C-2", "Many messages to one task take linear time."],
    ["ENGINE-C-3", "A start with many unfinished tasks does not block the event loop."],
    ["ENGINE-C-4", "A store that has failed permanently is reported once and not used again."],
    ["ENGINE-C-5", "Mail for a remote agent that never connects keeps no ended task in memory."],
    ["ENGINE-C-6", "Closing ends every live stream and every wait; a held step of an agent returns."],
    [
      "ENGINE-C-7",
      "Tasks that cannot be removed do not block the removal of others, and a sweep does not block the event loop.",
    ],
    ["ENGINE-C-8", "An unusable snapshot is skipped: the journal alone gives the state."],
    ["ENGINE-C-9", "A problem listener that throws does not stop a task."],
  ]),
  ...chapter("engine", "diagnostics and foreign data", [
    ["ENGINE-D-1", "A database of another program is rejected without changing a byte of it."],
    ["ENGINE-D-2", "A data directory that is deleted or replaced under a running process stops all writes."],
    ["ENGINE-D-3", "The stream of a message ends with that message's round, not with an earlier one's."],
    ["ENGINE-D-4", "An agent may answer with any awaitable value."],
    ["ENGINE-D-5", "A damaged file is rejected with its name and a remedy."],
    ["ENGINE-D-6", "A process is reported as ended only if it ended."],
  ]),
];
