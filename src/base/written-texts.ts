/** A piece of text that an agent writes: the data of a `token` event. */
export interface TokenData {
  readonly agent: string;
  /** Grows each time that the agent's answer begins again. */
  readonly attempt?: number;
  /** The tool whose call carries the text: `task_complete` answers the user. Absent for the agent's own text. */
  readonly tool?: string;
  readonly call_id?: string;
  /** Length of the text before this piece, in UTF-16 code units. */
  readonly offset?: number;
  readonly delta: string;
  /** All earlier pieces of the agent are invalid. */
  readonly reset?: boolean;
}

/** A text that an agent is writing, as far as it is known. */
export interface WrittenText {
  readonly agent: string;
  readonly tool?: string;
  readonly text: string;
}

/**
 * The texts that agents are writing, joined from their pieces.
 *
 * @example
 * const texts = new WrittenTexts();
 * texts.add({ agent: "desk", delta: "Hel" });
 * texts.add({ agent: "desk", offset: 3, delta: "lo" })?.text; // "Hello"
 */
export class WrittenTexts {
  readonly #texts = new Map<string, WrittenText>();

  /** In the order in which they began. */
  get all(): readonly WrittenText[] {
    return [...this.#texts.values()];
  }

  /** @returns the text that grew; undefined if none did */
  add({ agent, tool, call_id, offset, delta, reset }: TokenData): WrittenText | undefined {
    if (reset === true) this.end(agent);
    if (delta === "") return undefined;
    const id = `${agent}\n${call_id ?? ""}`;
    const text = this.#texts.get(id)?.text ?? "";
    const start = offset ?? text.length;
    // Pieces in between are missing, so the rest cannot be placed.
    if (start > text.length) return undefined;
    const grown = { agent, ...(tool !== undefined && { tool }), text: text.slice(0, start) + delta };
    this.#texts.set(id, grown);
    return grown;
  }

  /** Forgets the texts of one agent, or of all agents, when their turns end. Events have the finished texts. */
  end(agent?: string): void {
    for (const [id, text] of this.#texts) {
      if (agent === undefined || text.agent === agent) this.#texts.delete(id);
    }
  }
}
