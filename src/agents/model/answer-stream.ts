/** Streams what a model writes to the clients that follow the task: its text, and the arguments that are answers. */
import type { Turn } from "../../engine/index.js";
import type { MailToolName } from "../../mail/index.js";
import type { StreamPart } from "./language-model.js";
import { StringField } from "./string-field.js";

/** The arguments that carry an answer, by tool. */
const ANSWERS: Readonly<Partial<Record<MailToolName, string>>> = {
  task_complete: "finish_message",
  send_response: "body",
};

interface StreamedCall {
  readonly id: string;
  readonly name: string;
  readonly field: StringField;
}

export type TextTurn = Pick<Turn, "emitDelta" | "resetDeltas" | "tools">;

/** The streams of one turn, one for each call of a model. */
export class AnswerStream {
  readonly #turn: TextTurn;
  readonly #answers: ReadonlyMap<string, string>;
  #calls = new Map<string, StreamedCall | undefined>();
  #begun = false;
  /** The call whose text came last; `undefined` is the model's own text. */
  #last: StreamedCall | undefined | "none" = "none";

  constructor(turn: TextTurn) {
    this.#turn = turn;
    const offered = new Set(turn.tools.map(({ name }) => name));
    this.#answers = new Map(Object.entries(ANSWERS).filter(([name]) => offered.has(name)));
  }

  /** A model is called. Clients may have seen parts of an answer that is asked for again. */
  begin(): void {
    if (this.#begun) this.#turn.resetDeltas();
    this.#begun = false;
    this.#last = "none";
    this.#calls = new Map();
  }

  /** @returns what to print: the text that this part adds, on a line of its own where another one begins */
  add(part: StreamPart): string {
    switch (part.type) {
      case "text-delta":
        return this.#emit(part.delta);
      case "tool-input-start":
        if (part.providerExecuted !== true) this.#start(part.id, part.toolName);
        return "";
      case "tool-input-delta":
        return this.#grow(part.id, part.delta);
      case "tool-call":
        // Some providers send arguments as a whole.
        if (part.providerExecuted === true || this.#calls.has(part.toolCallId)) return "";
        this.#start(part.toolCallId, part.toolName);
        return this.#grow(part.toolCallId, part.input);
      default:
        return "";
    }
  }

  #start(id: string, name: string): void {
    const argument = this.#answers.get(name);
    this.#calls.set(id, argument === undefined ? undefined : { id, name, field: new StringField(argument) });
  }

  #grow(id: string, piece: string): string {
    const call = this.#calls.get(id);
    return call === undefined ? "" : this.#emit(call.field.add(piece), call);
  }

  #emit(delta: string, call?: StreamedCall): string {
    if (delta === "") return "";
    this.#begun = true;
    if (call === undefined) this.#turn.emitDelta(delta);
    else this.#turn.emitDelta(delta, { id: call.id, name: call.name });
    const isSame = this.#last === call;
    this.#last = call;
    return isSame ? delta : `\n${delta}`;
  }
}
