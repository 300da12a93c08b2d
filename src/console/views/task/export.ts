/** Files of a task. */
import { isAdmin, send } from "../../data/api.js";
import type { OpenTask } from "../../data/journal.js";
import { mermaidOf, svgOf } from "../../model/sequence.js";
import type { TaskRef } from "../../nav/dialogs.js";
import { toast } from "../../ui/kit.js";

function save(name: string, parts: BlobPart): void {
  const url = URL.createObjectURL(new Blob([parts], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const safe = (name: string) => name.replaceAll(/[^\w-]/g, "_").slice(0, 60);

export async function exportJournal(task: TaskRef): Promise<void> {
  const path = isAdmin()
    ? `admin/tasks/${encodeURIComponent(task.key)}/export`
    : `tasks/${encodeURIComponent(task.taskId)}/export`;
  try {
    const response = await send(path, { accept: "*/*" });
    save(`journal-${safe(task.taskId)}.jsonl`, await response.blob());
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), "bad");
  }
}

export function saveSvg(task: OpenTask): void {
  const head = task.head.value;
  if (head !== undefined) save(`lanes-${safe(head.taskId)}.svg`, svgOf(task.lanes, head.title));
}

export function saveMermaid(task: OpenTask): void {
  const head = task.head.value;
  if (head !== undefined) save(`sequence-${safe(head.taskId)}.mmd`, mermaidOf(task.lanes));
}
