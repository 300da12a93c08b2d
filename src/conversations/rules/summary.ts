/**
 * Summaries. The default summarizer is extractive and deterministic: it selects sentences from turns. It only
 * receives turns that every reader may see.
 */
import { toPlainText } from "./content.js";
import type { SummaryText } from "./entries.js";
import type { Turn } from "./types.js";

export interface SummaryInput {
  readonly subject?: string;
  readonly turns: readonly Turn[];
}

/** Writes summaries; `modelSummarizer` uses a model. */
export interface Summarizer {
  /** Stored with its summaries. A summary by another summarizer is generated again. */
  readonly name: string;
  summarize(input: SummaryInput): Promise<SummaryText>;
  /** Aborts running requests because the server is stopping. */
  close?(): void;
}

export const EXTRACTIVE = "extractive";

const MAX_POINTS = 10;
const LONGEST_SENTENCE = 300;
/** The newest sentences count, so that a summary costs little, however short its sentences are. */
const MAX_SENTENCES = 5_000;

const DECISION =
  /\b(decid\w*|decision|agreed?|approved?|conclu\w*|resolved|we (will|shall)|let's|chose\w*|final\w*)\b/i;

interface Sentence {
  readonly text: string;
  readonly order: number;
  readonly words: readonly string[];
}

export const extractiveSummarizer: Summarizer = {
  name: EXTRACTIVE,
  summarize: async (input) => extractSummary(input),
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
    openQuestions: texts(unanswered(questions, statements)),
  };
}

function sentencesOf(turns: readonly Turn[]): Sentence[] {
  const sentences: Sentence[] = [];
  for (const turn of turns) {
    const text = toPlainText(turn.content);
    if (text === undefined) continue;
    for (const piece of text.split(/(?<=[.!?])\s+|\n+/u)) {
      const trimmed = piece.replaceAll(/\s+/gu, " ").trim().slice(0, LONGEST_SENTENCE);
      if (trimmed === "") continue;
      sentences.push({ text: trimmed, order: sentences.length, words: wordsOf(trimmed) });
    }
  }
  return sentences.slice(-MAX_SENTENCES);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]{4,}/gu) ?? [];
}

/** The sentences with the most frequent words, in their original order. */
function mostTelling(sentences: readonly Sentence[], most: number): Sentence[] {
  const frequency = new Map<string, number>();
  for (const { words } of sentences) {
    for (const word of new Set(words)) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  }
  const weight = ({ words }: Sentence): number =>
    words.length === 0
      ? 0
      : words.reduce((sum, word) => sum + (frequency.get(word) ?? 0), 0) / Math.sqrt(words.length);
  return sentences
    .map((sentence) => ({ sentence, weight: weight(sentence) }))
    .sort((a, b) => b.weight - a.weight || a.sentence.order - b.sentence.order)
    .slice(0, most)
    .map(({ sentence }) => sentence)
    .sort((a, b) => a.order - b.order);
}

/** A question is open if no later turn shares a significant word with it. */
function unanswered(questions: readonly Sentence[], statements: readonly Sentence[]): Sentence[] {
  const lastUse = new Map<string, number>();
  for (const { order, words } of statements) for (const word of words) lastUse.set(word, order);
  return questions.filter(({ order, words }) => !words.some((word) => (lastUse.get(word) ?? -1) > order));
}

function texts(sentences: readonly Sentence[]): string[] {
  return [...new Set(sentences.map(({ text }) => text))].slice(-MAX_POINTS);
}

function count(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? "" : "s"}`;
}
