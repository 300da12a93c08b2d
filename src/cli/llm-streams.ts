/** Prints the output of models while they write it (`print_llm_streams`). */

import { ALL_TASKS_CHANNEL, deltaChannel, isCommitNotification, isDelta } from "../engine/index.js";
import type { Bus, Subscription } from "../journal/index.js";

/** @returns a function that stops it */
export function printStreams(bus: Bus, write: (text: string) => void): () => void {
  const watched = new Map<string, Subscription>();
  let speaking: string | undefined;
  const show = (note: unknown): void => {
    if (!isDelta(note)) return;
    const { key, agent, attempt, call, delta } = note;
    const speaker = [key, agent, attempt, call?.id].join(" ");
    if (speaker !== speaking) write(`\n[${agent}] `);
    speaking = speaker;
    write(delta);
  };
  const subscription = bus.subscribe(ALL_TASKS_CHANNEL, (note) => {
    if (!isCommitNotification(note)) return;
    const { key, entries } = note;
    const ended = entries.some(({ t }) => t === "completed" || t === "failed" || t === "cancelled");
    if (ended) {
      watched.get(key)?.close();
      watched.delete(key);
    } else if (!watched.has(key)) watched.set(key, bus.subscribe(deltaChannel(key), show));
  });
  return () => {
    subscription.close();
    for (const delta of watched.values()) delta.close();
  };
}
