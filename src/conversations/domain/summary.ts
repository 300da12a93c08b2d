/**
 * Summaries. The default summariser is extractive and deterministic: it picks sentences that were said, it invents
 * none. It only ever gets turns that every reader may see.
 */
import { textOf } from "./content.js";
import type { SummaryText } from "./entries.js";
import type { Turn } from "./types.js";

export interface SummaryInput {
  readonly subject?: string;
  readonly turns: readonly Turn[];
}

/** Can be replaced by one that asks a model. */
export interface Summariser {
  /** Kept with what it writes: what another has written is made anew. */
  readonly name: string;
  summarise(input: SummaryInput): Promise<SummaryText>;
  /** Ends what is under way: the server stops. */
  close?(): void;
}

export const EXTRACTIVE = "extractive";

const MOST_POINTS = 10;
const LONGEST_SENTENCE = 300;

const DECISION =
  /\b(decid\w*|decision|agreed?|approved?|conclu\w*|resolved|we (will|shall)|let's|chose\w*|final\w*)\b/i;

interface Sentence {
  readonly text: string;
  readonly order: number;
  readonly words: readonly string[];
}

export const extractiveSummariser: Summariser = {
  name: EXTRACTIVE,
  summarise: async (input) => extractSummary(input),
};

export function extractSummary({ subject, turns }: SummaryInput): SummaryText {
  const sentences = sentencesOf(turns);
  const questions = sentences.filter(({ text }) => text.endsWith("?"));
  const statements = sentences.filter(({ text }) => !text.endsWith("?"));
  const keyPoints = mostTelling(statements, 5).map(({ text }) => text);
  const authors = new Set(turns.map(({ participant }) => participant));
  const about = subject === undefined ? "" : ` about ${JSON.stringify(subject)}`;
  const opening =
    turns.length === 0
      ? `Nothing has been said${about} yet.`
      : `${count(turns.length, "turn")} by ${count(authors.size, "participant")}${about}.`;
  return {
    summary: [opening, ...mostTelling(statements, 3).map(({ text }) => text)].join(" "),
    keyPoints,
    keyDecisions: texts(statements.filter(({ text }) => DECISION.test(text))),
    openQuestions: texts(unanswered(questions, sentences)),
  };
}

function sentencesOf(turns: readonly Turn[]): Sentence[] {
  const sentences: Sentence[] = [];
  for (const turn of turns) {
    const text = textOf(turn.content);
    if (text === undefined) continue;
    for (const piece of text.split(/(?<=[.!?])\s+|\n+/u)) {
      const trimmed = piece.replaceAll(/\s+/gu, " ").trim().slice(0, LONGEST_SENTENCE);
      if (trimmed === "") continue;
      sentences.push({ text: trimmed, order: sentences.length, words: wordsOf(trimmed) });
    }
  }
  return sentences;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]{4,}/gu) ?? [];
}

/** Sentences whose words are said most often, in the order in which they were said. */
function mostTelling(sentences: readonly Sentence[], most: number): Sentence[] {
  const frequency = new Map<string, number>();
  for (const { words } of sentences) {
    for (const word of new Set(words)) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  }
  const weight = ({ words }: Sentence): number =>
    words.length === 0
      ? 0
      : words.reduce((sum, word) => sum + (frequency.get(word) ?? 0), 0) / Math.sqrt(words.length);
  return [...sentences]
    .sort((a, b) => weight(b) - weight(a) || a.order - b.order)
    .slice(0, most)
    .sort((a, b) => a.order - b.order);
}

/** A question stands open when nothing after it shares a telling word with it. */
function unanswered(questions: readonly Sentence[], all: readonly Sentence[]): Sentence[] {
  return questions.filter(({ order, words }) => {
    const asked = new Set(words);
    return !all.some(
      (later) =>
        later.order > order && !later.text.endsWith("?") && later.words.some((word) => asked.has(word)),
    );
  });
}

function texts(sentences: readonly Sentence[]): string[] {
  return [...new Set(sentences.map(({ text }) => text))].slice(-MOST_POINTS);
}

function count(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? "" : "s"}`;
}
