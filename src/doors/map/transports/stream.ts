/** MAP over a pair of byte streams, such as stdio: one JSON-RPC object per line of UTF-8 (REF-24). */
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { MapError } from "../../../conversations/index.js";
import { errorFrame } from "../rpc.js";
import type { MapServer } from "../server.js";

export interface StreamOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Used when `map/connect` has no credential. */
  readonly credential?: string;
}

/** Serves one connection. Resolves when the input ends or the connection closes. */
export function serveMapStream(map: MapServer, { input, output, credential }: StreamOptions): Promise<void> {
  return new Promise((resolve) => {
    const connection = map.connect(
      {
        send: (text) => {
          output.write(`${text}\n`);
        },
        get buffered() {
          return output.writableLength;
        },
        close: () => {
          output.end();
          input.pause();
          resolve();
        },
        pause: () => input.pause(),
        resume: () => input.resume(),
        abort: () => output.destroy(),
      },
      credential === undefined ? {} : { credential },
    );
    if (connection === undefined) return;
    const lines = new LineReader(map.limits.maxFrame, {
      line: (text) => connection.receive(text),
      tooLong: () => {
        const error = new MapError("EXHAUSTED", `a line exceeds ${map.limits.maxFrame} characters`);
        connection.send(errorFrame(null, error.toWire()));
      },
    });
    const decoder = new StringDecoder("utf8");
    const end = (): void => {
      lines.end();
      connection.lost();
      resolve();
    };
    input.on("data", (chunk: Buffer | string) => {
      lines.push(typeof chunk === "string" ? chunk : decoder.write(chunk));
    });
    input.once("end", end);
    input.once("error", end);
    output.on("error", end);
  });
}

interface LineHandlers {
  readonly line: (text: string) => void;
  readonly tooLong: () => void;
}

/** Splits text into lines. A line that is too long is reported once and skipped. */
class LineReader {
  readonly #limit: number;
  readonly #handlers: LineHandlers;
  #rest = "";
  #skipping = false;

  constructor(limit: number, handlers: LineHandlers) {
    this.#limit = limit;
    this.#handlers = handlers;
  }

  push(text: string): void {
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      this.#take(text.slice(from, at), true);
      from = at + 1;
    }
    this.#take(text.slice(from), false);
  }

  /** The last line needs no line break. */
  end(): void {
    this.#take("", true);
  }

  #take(piece: string, complete: boolean): void {
    if (!this.#skipping) {
      this.#rest += piece;
      if (this.#rest.length > this.#limit) {
        this.#rest = "";
        this.#skipping = true;
        this.#handlers.tooLong();
      }
    }
    if (!complete) return;
    const line = this.#rest.trim();
    this.#rest = "";
    this.#skipping = false;
    if (line !== "") this.#handlers.line(line);
  }
}
