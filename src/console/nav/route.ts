/** Where the page is: real addresses below the console's own. */
import { signal } from "@preact/signals";
import { BASE } from "../data/api.js";

export interface Route {
  /** `tasks`, `needs-you`, … */
  readonly screen: string;
  readonly id: string | undefined;
  readonly query: URLSearchParams;
}

function read(): Route {
  const path = location.pathname.startsWith(BASE.pathname)
    ? location.pathname.slice(BASE.pathname.length)
    : "";
  const [screen = "", ...rest] = path.split("/");
  const id = rest.join("/");
  return {
    screen: screen === "" ? "tasks" : screen,
    id: id === "" ? undefined : decode(id),
    query: new URLSearchParams(location.search),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal<Route>(read());

window.addEventListener("popstate", () => {
  route.value = read();
});

export function href(
  screen: string,
  id?: string,
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const url = new URL(id === undefined ? screen : `${screen}/${encodeURIComponent(id)}`, BASE);
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") url.searchParams.set(name, value);
  return url.pathname + url.search;
}

export function go(to: string, replace = false): void {
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  route.value = read();
}

/** Changes parts of the query and stays on the screen. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text === "" ? "" : `?${text}`), true);
}

/** Plain clicks on links within the console do not leave the page. */
export function followLinks(): void {
  document.addEventListener("click", (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (
      link === null ||
      link.target !== "" ||
      link.hasAttribute("download") ||
      link.origin !== location.origin
    )
      return;
    if (!link.pathname.startsWith(BASE.pathname)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
