/** What the screen puts into the top bar. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { visibleString } from "../model/visible-text.js";

export interface Top {
  readonly left: ComponentChildren;
  readonly right?: ComponentChildren;
}

export const top = signal<Top>({ left: null });

/** `deps` say when the bar has to be drawn again. */
export function useTop(title: string, make: () => Top, deps: readonly unknown[]): void {
  useEffect(() => {
    top.value = make();
    document.title = title === "" ? "Mailroom" : `${visibleString(title)} · Mailroom`;
  }, [title, ...deps]);
}
