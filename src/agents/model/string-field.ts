/** Reads one string of a JSON object while the object's text arrives in pieces. */

type State =
  | "start"
  | "key"
  | "in key"
  | "colon"
  | "value"
  | "in text"
  | "in string"
  | "nested"
  | "scalar"
  | "end";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/**
 * The value of a field that is a string, as far as it has arrived. Takes linear time for any number of pieces, which
 * may end anywhere, and keeps only what is incomplete. Of a field that occurs twice it reads the first. After text that
 * is not JSON it reads nothing more.
 */
export class StringField {
  readonly #name: string;
  #state: State = "start";
  #key = "";
  /** An escape sequence whose end has not arrived. */
  #escape = "";
  /** The first half of a surrogate pair whose second half has not arrived. */
  #half = "";
  #depth = 0;
  #quoted = false;
  #found = false;

  constructor(name: string) {
    this.#name = name;
  }

  /** @returns the text that this piece adds to the value */
  add(piece: string): string {
    let text = this.#half;
    this.#half = "";
    for (let at = 0; at < piece.length; ) {
      switch (this.#state) {
        case "in text": {
          const read = this.#readString(piece, at);
          text += read.text;
          at = read.at;
          if (read.closed) {
            this.#found = true;
            this.#state = "scalar";
          }
          break;
        }
        case "in key": {
          const read = this.#readString(piece, at);
          // Longer keys are not the one, so their rest is not kept.
          if (this.#key.length <= this.#name.length) this.#key += read.text;
          at = read.at;
          if (read.closed) this.#state = "colon";
          break;
        }
        case "in string": {
          const read = this.#readString(piece, at);
          at = read.at;
          if (read.closed) this.#state = "scalar";
          break;
        }
        case "nested":
          at = this.#skipNested(piece, at);
          break;
        case "end":
          at = piece.length;
          break;
        default:
          this.#readToken(piece.charAt(at));
          at++;
      }
    }
    // A pair that is cut in half is no text.
    if (this.#state === "in text" && isHighSurrogate(text)) {
      this.#half = text.slice(-1);
      return text.slice(0, -1);
    }
    return text;
  }

  /** Reads a character outside of strings and nested values. */
  #readToken(character: string): void {
    switch (this.#state) {
      case "start":
        if (character === "{") this.#state = "key";
        else if (!isSpace(character)) this.#state = "end";
        return;
      case "key":
        if (character === '"') {
          this.#key = "";
          this.#state = "in key";
        } else if (!isSpace(character)) this.#state = "end";
        return;
      case "colon":
        if (character === ":") this.#state = "value";
        else if (!isSpace(character)) this.#state = "end";
        return;
      case "value":
        if (isSpace(character)) return;
        if (character === '"')
          this.#state = this.#key === this.#name && !this.#found ? "in text" : "in string";
        else if (character === "{" || character === "[") {
          this.#depth = 1;
          this.#state = "nested";
        } else this.#state = "scalar";
        return;
      default:
        // The rest of a number or of a literal, or what follows a value.
        if (character === ",") this.#state = "key";
        else if (character === "}") this.#state = "end";
    }
  }

  #skipNested(piece: string, from: number): number {
    for (let at = from; at < piece.length; at++) {
      const character = piece.charAt(at);
      if (this.#escape !== "") this.#escape = "";
      else if (this.#quoted) {
        if (character === "\\") this.#escape = character;
        else if (character === '"') this.#quoted = false;
      } else if (character === '"') this.#quoted = true;
      else if (character === "{" || character === "[") this.#depth++;
      else if (character === "}" || character === "]") {
        this.#depth--;
        if (this.#depth > 0) continue;
        this.#state = "scalar";
        return at + 1;
      }
    }
    return piece.length;
  }

  #readString(piece: string, from: number): { text: string; at: number; closed: boolean } {
    let text = "";
    let at = from;
    while (at < piece.length) {
      if (this.#escape !== "") {
        this.#escape += piece.charAt(at);
        at++;
        const character = characterOf(this.#escape);
        if (character === undefined) continue;
        this.#escape = "";
        if (character === "") return this.#stop(text, piece);
        text += character;
        continue;
      }
      const start = at;
      let code = 0;
      for (; at < piece.length; at++) {
        code = piece.charCodeAt(at);
        if (code === QUOTE || code === BACKSLASH || code < FIRST_PRINTABLE) break;
      }
      text += piece.slice(start, at);
      if (at === piece.length) break;
      at++;
      if (code === QUOTE) return { text, at, closed: true };
      if (code !== BACKSLASH) return this.#stop(text, piece);
      this.#escape = "\\";
    }
    return { text, at, closed: false };
  }

  #stop(text: string, piece: string): { text: string; at: number; closed: boolean } {
    this.#state = "end";
    return { text, at: piece.length, closed: false };
  }
}

/** @returns undefined if the sequence is incomplete, nothing if it is invalid */
function characterOf(sequence: string): string | undefined {
  const letter = sequence.charAt(1);
  if (letter !== "u") return ESCAPES[letter] ?? "";
  const digits = sequence.slice(2);
  if (!/^[0-9a-f]*$/i.test(digits)) return "";
  return digits.length < 4 ? undefined : String.fromCharCode(Number.parseInt(digits, 16));
}

function isHighSurrogate(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}

function isSpace(character: string): boolean {
  return character === " " || character === "\n" || character === "\r" || character === "\t";
}
