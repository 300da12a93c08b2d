/** The answer to a message, printed on a terminal while it is written. */
import { type TaskEvent, tokenOf, WrittenTexts } from "../client/index.js";
import { escapeControlCharacters, type Terminal } from "./terminal.js";

const INDENT = "    ";

export class LiveAnswer {
  readonly #terminal: Pick<Terminal, "out" | "write" | "colors">;
  readonly #texts = new WrittenTexts();
  /** What is on the terminal of the answer that is being written. */
  #printed = "";

  constructor(terminal: Pick<Terminal, "out" | "write" | "colors">) {
    this.#terminal = terminal;
  }

  /** @returns whether the event is text, and needs no line of its own */
  take(event: TaskEvent): boolean {
    const token = tokenOf(event);
    if (token === undefined) return false;
    const grown = this.#texts.add(token);
    if (grown?.tool !== "task_complete") return true;
    const continues = this.#printed !== "" && grown.text.startsWith(this.#printed);
    if (!continues) {
      if (this.#printed !== "")
        this.#terminal.out(`\n${this.#terminal.colors.dim("  the answer begins again")}`);
      this.#terminal.write(INDENT);
      this.#printed = "";
    }
    const added = escapeControlCharacters(grown.text.slice(this.#printed.length));
    this.#terminal.write(added.replaceAll("\n", `\n${INDENT}`));
    this.#printed = grown.text;
    return true;
  }

  /** A line follows, with which a text that has begun ends. @returns the text */
  end(): string {
    const printed = this.#printed;
    if (printed !== "") this.#terminal.out();
    this.#printed = "";
    return printed;
  }
}
