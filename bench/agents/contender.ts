/** What is measured: the same task in each system, with a model that answers at once. */
export const QUESTION = "What is the weather in Tokyo?";
export const FORECAST = "sunny, 21 °C";

/** supervisor → weather → supervisor → finish: each a call of the model, answered with one call of a tool. */
export const TURNS = 3;

export interface Contender {
  /** Does one task; the answer is the forecast. `caller` counts those who ask at the same time. */
  run(caller: number): Promise<string>;
  /** Milliseconds that were spent inside the model since the beginning: they are nobody's overhead. */
  modelTime(): number;
  close(): Promise<void>;
}

export interface Surroundings {
  /** An empty directory. */
  readonly directory: string;
  /** Whether every step is to be on the disk before the next one begins. */
  readonly fsync: boolean;
}
