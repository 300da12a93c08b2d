/** Reads what `strace -f -y` wrote about a process: which calls ended in which order, and on which files. */

export interface Call {
  readonly name: string;
  /** The path of the file that the call's first argument names. */
  readonly file: string;
  readonly text: string;
  readonly result: number;
}

/** The calls in the order in which they ended. One that another thread interrupted in the trace is put together. */
export function readTrace(trace: string): Call[] {
  const unfinished = new Map<string, string>();
  const calls: Call[] = [];
  for (const line of trace.split("\n")) {
    const [, process = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const begun = /^(.*)<unfinished \.\.\.>$/.exec(rest);
    if (begun?.[1] !== undefined) {
      unfinished.set(process, begun[1]);
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    const text = resumed?.[1] === undefined ? rest : `${unfinished.get(process) ?? ""}${resumed[1]}`;
    const call = /^(\w+)\((?:\d+<([^>]*)>|"([^"]*)").*\)\s+= (-?\d+)/.exec(text);
    if (call === null) continue;
    const [, name = "", opened, named, result = ""] = call;
    calls.push({ name, file: opened ?? named ?? "", text, result: Number(result) });
  }
  return calls;
}

export interface Verdict {
  readonly acknowledged: number;
  /** Acknowledgements given while something written to the log had not been synced. */
  readonly tooEarly: number;
  /** Writes to the log, and successful syncs of it. */
  readonly writes: number;
  readonly syncs: number;
  /** Writes to the database itself: the log was written back. */
  readonly writtenBack: number;
}

/** Everything written to the log is synced before the acknowledgement that depends on it (decision C6). */
export function judge(calls: readonly Call[], marks: string): Verdict {
  let acknowledged = 0;
  let tooEarly = 0;
  let writes = 0;
  let syncs = 0;
  let writtenBack = 0;
  let unsynced = false;
  for (const { name, file, text, result } of calls) {
    if (file.endsWith("-wal")) {
      if (/^p?write/.test(name)) {
        writes += 1;
        unsynced = true;
      } else if (/^f(data)?sync$/.test(name) && result === 0) {
        syncs += 1;
        unsynced = false;
      }
    } else if (file.endsWith("mailroom.db") && /^p?write/.test(name)) {
      writtenBack += 1;
    } else if (file === marks && text.includes("acknowledged")) {
      acknowledged += 1;
      if (unsynced) tooEarly += 1;
    }
  }
  return { acknowledged, tooEarly, writes, syncs, writtenBack };
}
