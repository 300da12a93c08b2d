/** The server's log, on standard error: JSON, or text for people. */
import { Writable } from "node:stream";
import { type Logger, pino } from "pino";
import type { Settings } from "./catalog.js";

export function createLogger({ level, format }: Settings["log"]): Logger {
  const destination = format === "json" ? pino.destination({ fd: 2, sync: true }) : asText(process.stderr);
  // Credentials are never logged, whatever the object that holds them is called (decision C7).
  const redact = ["req.headers.authorization", "headers.authorization", "*.token", "*.auth_token"];
  return pino({ level, redact, base: null }, destination);
}

function asText(target: NodeJS.WritableStream): Writable {
  return new Writable({
    write(chunk, _encoding, done) {
      target.write(`${textOf(String(chunk))}\n`);
      done();
    },
  });
}

function textOf(line: string): string {
  const record: unknown = JSON.parse(line);
  if (typeof record !== "object" || record === null) return line.trim();
  const { level, time, msg, ...rest }: Record<string, unknown> = { ...record };
  const name = typeof level === "number" ? (pino.levels.labels[level] ?? String(level)) : "";
  const at = typeof time === "number" ? new Date(time).toISOString() : "";
  const more = Object.keys(rest).length === 0 ? "" : ` ${JSON.stringify(rest)}`;
  return `${at} ${name.padEnd(5)} ${String(msg ?? "")}${more}`;
}
