import { signal } from "@preact/signals";

const NAME = "mailroom.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export type Theme = "light" | "dark";

function wanted(): Theme {
  const kept = localStorage.getItem(NAME);
  if (kept === "light" || kept === "dark") return kept;
  return dark.matches ? "dark" : "light";
}

export const theme = signal<Theme>(wanted());

function show(): void {
  document.documentElement.dataset.theme = theme.value;
}

export function startTheme(): void {
  show();
  dark.addEventListener("change", () => {
    theme.value = wanted();
    show();
  });
}

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(NAME, theme.value);
  show();
}
