/** Progress notifications with the text that agents write. */
import { systemClock, WrittenTexts } from "../../base/index.js";
import { DeltaBuffer } from "../../engine/index.js";
import { tokenData } from "../../extension/index.js";
import type { TextDelta } from "../../library/index.js";
import type { ToolCall } from "./tool.js";

/** Milliseconds between two notifications. */
const EVERY = 250;

/** Characters of a text that people see: its end. */
const SHOWN = 200;

/** The name of a piece of text in `_meta`, for programs. */
const TOKEN_META = "mailroom/token";

export class WrittenProgress {
  readonly #call: ToolCall;
  readonly #waiting = new DeltaBuffer();
  readonly #texts = new WrittenTexts();
  #cancelTimer: (() => void) | undefined;

  constructor(call: ToolCall) {
    this.#call = call;
  }

  add(delta: TextDelta): void {
    this.#waiting.add({ key: "", ...delta });
    this.#cancelTimer ??= systemClock.after(EVERY, () => this.flush());
  }

  /** Sends what waits: before an event that follows it, for instance. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    for (const note of this.#waiting.take()) {
      const token = tokenData(note);
      const text = this.#texts.add(token)?.text ?? "";
      const end = text.length > SHOWN ? `…${text.slice(-SHOWN)}` : text;
      const message = token.delta === "" ? `${token.agent} begins again` : `${token.agent} writes: ${end}`;
      this.#call.progress(message, { [TOKEN_META]: token });
    }
  }

  close(): void {
    this.#cancelTimer?.();
  }
}
