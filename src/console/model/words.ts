/** Numbers, times and calls as words. */
import type { AgentToolCall } from "../../mail/pure.js";

/** The first line that says something, without surplus space. */
export function firstLine(text: string, most = 200): string {
  for (const line of text.slice(0, 4_000).split("\n")) {
    const words = line.replaceAll(/\s+/g, " ").trim();
    if (words !== "") return words.length > most ? `${words.slice(0, most - 1)}…` : words;
  }
  return "";
}

/** The first line without the marks of Markdown. */
export function plainLine(text: string): string {
  return firstLine(text)
    .replaceAll(/\*\*|__|`/g, "")
    .replace(/^(?:#{1,6}|[-*>])\s+/, "");
}

/** `35 ms`, `1.28 s`, `14.8 s`, `3 m 12 s`, `2 h 5 m`, `3 d 4 h` */
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 9.995) return `${seconds.toFixed(2)} s`;
  if (seconds < 99.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3_600) return `${Math.floor(whole / 60)} m ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} m`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3_600)} h`;
}

/** How long ago, coarsely: `now`, `4 s`, `12 m`, `3 h`, `5 d`. */
export function ago(ms: number): string {
  if (ms < 2_000) return "now";
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** The same in a sentence: `just now`, `4 s ago`. */
export function sinceThen(ms: number): string {
  const words = ago(ms);
  return words === "now" ? "just now" : `${words} ago`;
}

/** `452`, `1.2k`, `33k`, `7.2M` */
export function short(count: number): string {
  if (count < 1_000) return String(Math.round(count));
  if (count < 9_950) return `${(count / 1_000).toFixed(1)}k`;
  if (count < 999_500) return `${Math.round(count / 1_000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** `11,432` */
export function grouped(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

export function money(dollars: number): string {
  if (dollars === 0) return "$0";
  return dollars < 10 ? `$${dollars.toFixed(3)}` : `$${dollars.toFixed(2)}`;
}

export function bytes(count: number): string {
  if (count < 1_000) return `${count} B`;
  if (count < 1_000_000) return `${(count / 1_000).toFixed(1)} kB`;
  if (count < 1_000_000_000) return `${(count / 1_000_000).toFixed(1)} MB`;
  return `${(count / 1_000_000_000).toFixed(2)} GB`;
}

/** `19:53:58.374`, in the reader's time zone. */
export function clock(at: number, millis = true): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return millis ? `${time}.${String(date.getMilliseconds()).padStart(3, "0")}` : time;
}

/** `2026-11-18 19:53:58` */
export function dateAndTime(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(at, false)}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** `search_logs(checkout-api, 4f2c1e0)`: the name and the first arguments. */
export function describeCall({ name, args }: AgentToolCall, most = 60): string {
  const shown = Object.values(args)
    .slice(0, 3)
    .map((value) => firstLine(typeof value === "string" ? value : (JSON.stringify(value) ?? ""), most));
  const inside = shown.join(", ");
  return `${name}(${inside.length > most ? `${inside.slice(0, most - 1)}…` : inside})`;
}

/** `user:ann` of `user:ann@desk` */
export function principalOf(owner: string): string {
  return owner.replace(/@[^@]*$/, "");
}

/** `ann` of `user:ann@desk` */
export function ownerName(owner: string): string {
  const person = principalOf(owner);
  return person.slice(person.indexOf(":") + 1);
}
