/** Keys. The last screen or dialog that asked for a key gets it. */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

type Handler = (event: KeyboardEvent) => void;
export type KeyMap = Readonly<Record<string, Handler>>;

const SWITCH = "mailroom.single-keys";
/** Single letters can be switched off (WCAG 2.1.4). */
export const singleKeys = signal(localStorage.getItem(SWITCH) !== "off");

export function setSingleKeys(on: boolean): void {
  singleKeys.value = on;
  localStorage.setItem(SWITCH, on ? "on" : "off");
}

/** How long `g` waits for the second key, in milliseconds. */
const LEADER = 4_000;
const layers: { readonly map: () => KeyMap; readonly modal: boolean }[] = [];
let leader = 0;

function nameOf(event: KeyboardEvent): string {
  const { key } = event;
  const name = key === " " ? "Space" : key;
  const control = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
  const shift = event.shiftKey && (name.length > 1 || /[a-z]/i.test(name)) ? "Shift+" : "";
  return control + shift + (name.length === 1 ? name.toLowerCase() : name);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

export function listenForKeys(): void {
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.isComposing) return;
    const name = nameOf(event);
    const typing = isTyping(event.target);
    const plain = !name.startsWith("Ctrl+") && event.key.length === 1;
    if (typing && plain) return;
    if (typing && /^(?:Arrow|Enter|Home|End|Page|Backspace|Delete)/.test(name)) return;
    if (plain && !singleKeys.value) return;
    const withLeader = Date.now() - leader < LEADER ? `g ${name}` : undefined;
    leader = 0;
    for (let at = layers.length - 1; at >= 0; at--) {
      const layer = layers[at];
      const map = layer?.map() ?? {};
      const handler = (withLeader === undefined ? undefined : map[withLeader]) ?? map[name];
      if (handler !== undefined) {
        // A focused button or link keeps Enter for itself.
        if (
          name === "Enter" &&
          event.target instanceof HTMLElement &&
          /^(?:BUTTON|A|SUMMARY)$/.test(event.target.tagName)
        )
          return;
        event.preventDefault();
        handler(event);
        return;
      }
      if (layer?.modal === true) return;
    }
    if (name === "g") leader = Date.now();
  });
}

/** While the component is there. A modal layer hides the keys below it. */
export function useKeys(map: KeyMap, modal = false): void {
  const current = useRef(map);
  current.current = map;
  // Before the next key can arrive.
  useLayoutEffect(() => {
    const layer = { map: () => current.current, modal };
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, [modal]);
}
