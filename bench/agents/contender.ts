/** The measured task, the same in each system, with a model that answers at once. */
export const QUESTION = "What is the weather in Tokyo?";
export const FORECAST = "sunny, 21 °C";

/** supervisor → weather → supervisor → finish: each a call of the model, answered with one call of a tool. */
export const TURNS = 3;

/** The second task: one answer of the model calls this many tools, each of which takes this long; then it finishes. */
export const TOOLS = 6;
export const TOOL_TIME = 500;

export interface Contender {
  /** Runs one task; the answer is the forecast. `caller` numbers the concurrent callers. */
  run(caller: number): Promise<string>;
  /** Runs the task with slow tools once; the answer is the forecast. */
  runTools(): Promise<string>;
  /** Milliseconds spent inside the model so far; they do not count as overhead. */
  modelTime(): number;
  close(): Promise<void>;
}

export interface Surroundings {
  /** An empty directory. */
  readonly directory: string;
  /** Whether every step must be synced to disk before the next one starts. */
  readonly fsync: boolean;
}
