/** What a feed sends: made once for everyone who gets it. */
import type { CursorForm, Cursors, FeedPlace } from "../cursors.js";

export class Chunk {
  /** Everything up to here is sent once this is; nothing for what cannot be replayed. */
  readonly place: FeedPlace | undefined;
  /** Of the watched task: whether a listener that has more already skips it. */
  readonly entries: boolean;
  readonly size: number;
  readonly #text: (id: string | undefined) => string;
  readonly #cursors: Cursors;
  readonly #texts = new Map<CursorForm | "bare", Uint8Array>();

  constructor(
    cursors: Cursors,
    parts: {
      readonly place?: FeedPlace | undefined;
      readonly entries?: boolean;
      readonly size: number;
      readonly text: (id: string | undefined) => string;
    },
  ) {
    this.#cursors = cursors;
    this.place = parts.place;
    this.entries = parts.entries ?? false;
    this.size = parts.size;
    this.#text = parts.text;
  }

  /** Encoded once for all listeners. @param form `bare` leaves the cursor out */
  textFor(form: CursorForm | "bare"): Uint8Array {
    const { place } = this;
    const used = place === undefined ? "bare" : form;
    let text = this.#texts.get(used);
    if (text === undefined) {
      const id = used === "bare" || place === undefined ? undefined : this.#cursors.write(used, place);
      text = Buffer.from(this.#text(id));
      this.#texts.set(used, text);
    }
    return text;
  }
}
