/** Which dialog is open. Screens ask for one here; the frame shows it. */
import { signal } from "@preact/signals";

export interface TaskRef {
  readonly key: string;
  readonly taskId: string;
  readonly owner: string;
  readonly title: string;
}

export type OpenDialog =
  | { readonly kind: "new-task" }
  /** With `more`, type, agent and step limit are shown. */
  | { readonly kind: "message"; readonly task: TaskRef; readonly more?: boolean }
  | { readonly kind: "cancel"; readonly tasks: readonly TaskRef[] }
  | { readonly kind: "palette" }
  | { readonly kind: "keys" }
  | { readonly kind: "identity" };

export const dialog = signal<OpenDialog | undefined>(undefined);

/** What the palette can do besides going somewhere: set by the screen that is shown. */
export interface ScreenCommand {
  readonly name: string;
  readonly key?: string;
  readonly run: () => void;
}

export const screenCommands = signal<readonly ScreenCommand[]>([]);
