/** Colors of the style sheet, for canvases. */
import { theme } from "../nav/theme.js";

const AGENTS = 8;
let known: string | undefined;
const cache = new Map<string, string>();

export function colorOf(name: string): string {
  if (known !== theme.value) {
    known = theme.value;
    cache.clear();
  }
  const kept = cache.get(name);
  if (kept !== undefined) return kept;
  const color = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  cache.set(name, color);
  return color;
}

export function agentColor(index: number): string {
  return colorOf(`--agent-${index % AGENTS}`);
}

/** The class of a small square in that color. */
export function agentClass(index: number): string {
  return `square c${index % AGENTS}`;
}
