/** Prints the output of models while they write it (`print_llm_streams`). */

import { ALL_TASKS_CHANNEL, deltaChannel, isCommitNotification } from "../engine/index.js";
import type { Bus, Subscription } from "../journal/index.js";

/** @returns a function that stops it */
export function printStreams(bus: Bus, write: (text: string) => void): () => void {
  const watched = new Map<string, Subscription>();
  let speaking: string | undefined;
  const show = (note: unknown): void => {
    if (typeof note !== "object" || note === null) return;
    if (!("agent" in note && "delta" in note && "key" in note)) return;
    const speaker = `${String(note.key)} ${String(note.agent)}`;
    if (speaker !== speaking) write(`\n[${String(note.agent)}] `);
    speaking = speaker;
    if ("reset" in note) write(`\n[${String(note.agent)}] `);
    write(String(note.delta));
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
