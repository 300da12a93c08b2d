/** Shows what models write while they write it (`print_llm_streams`). */
import type { Bus } from "../../engine/ports.js";
import { ALL_TASKS_CHANNEL, deltaChannel, isCommitNote } from "../../engine/runtime/index.js";

/** @returns a function that stops it */
export function printStreams(bus: Bus, write: (text: string) => void): () => void {
  const watched = new Map<string, () => void>();
  let speaking: string | undefined;
  const show = (note: unknown): void => {
    if (typeof note !== "object" || note === null) return;
    if (!("agent" in note && "delta" in note && "key" in note)) return;
    const speaker = `${String(note.key)} ${String(note.agent)}`;
    if (speaker !== speaking) write(`\n[${String(note.agent)}] `);
    speaking = speaker;
    write(String(note.delta));
  };
  const unsubscribe = bus.subscribe(ALL_TASKS_CHANNEL, (note) => {
    if (!isCommitNote(note)) return;
    const { key, entries } = note;
    const ended = entries.some(({ t }) => t === "completed" || t === "failed" || t === "cancelled");
    if (ended) {
      watched.get(key)?.();
      watched.delete(key);
    } else if (!watched.has(key)) watched.set(key, bus.subscribe(deltaChannel(key), show));
  });
  return () => {
    unsubscribe();
    for (const stop of watched.values()) stop();
  };
}
