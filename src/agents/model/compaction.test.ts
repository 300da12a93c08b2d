import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HistoryItem } from "../../engine/agent.js";
import { createAgentAddress, createUserAddress } from "../../mail/address.js";
import { buildRequest } from "../../mail/build.js";
import { chooseCompactionPoint, shortenItems, sizeOfAll } from "./compaction.js";
import { historyPrompt } from "./prompt.js";

const PARTS = { model: "m", traits: {}, prefix: "" };

const letter = (body: string) =>
  buildRequest({
    id: "00000000-0000-4000-8000-000000000000",
    timestamp: "2026-01-01T00:00:00.000Z",
    taskId: "t",
    sender: createUserAddress("ann"),
    recipient: createAgentAddress("me"),
    subject: "s",
    body,
  });

/** Histories as the engine builds them: a turn's messages and answer share a number, results follow. */
const histories = fc
  .array(
    fc.record({
      letters: fc.integer({ min: 0, max: 2 }),
      calls: fc.integer({ min: 0, max: 3 }),
      size: fc.nat(400),
    }),
    {
      maxLength: 12,
    },
  )
  .map((turns) => {
    const history: HistoryItem[] = [];
    let number = 0;
    for (const { letters, calls, size } of turns) {
      number++;
      for (let at = 0; at < letters; at++) {
        history.push({ kind: "message", number, message: letter("x".repeat(size)) });
      }
      // Ids repeat from turn to turn, as with some models.
      const made = Array.from({ length: calls }, (_, index) => ({ id: `c${index}`, name: "tool", args: {} }));
      history.push({ kind: "answer", number, text: "said", calls: made });
      for (const { id } of made) {
        number++;
        history.push({
          kind: "result",
          number,
          callId: id,
          name: "tool",
          ok: true,
          content: "y".repeat(size),
        });
      }
    }
    history.push({ kind: "message", number: number + 1, message: letter("the newest") });
    return history;
  });

describe("cutting a history", () => {
  it("never separates a call from its result, keeps the newest message, and cuts where the engine cuts", () => {
    fc.assert(
      fc.property(histories, fc.nat(3_000), (history, keep) => {
        const cut = chooseCompactionPoint(history, keep);
        if (cut === undefined) return;
        expect(history.filter((item) => !cut.requests.some((request) => request === item))).toEqual([
          ...cut.gone,
          ...cut.kept,
        ]);
        expect(cut.gone.every(({ number }) => number <= cut.upTo)).toBe(true);
        expect(cut.kept.every(({ number }) => number > cut.upTo)).toBe(true);
        expect(cut.kept.at(-1)).toBe(history.at(-1));
        const lastAnswer = history.findLast((item) => item.kind === "answer" && item.calls.length > 0);
        if (lastAnswer !== undefined) expect(cut.kept).toContain(lastAnswer);
        for (const part of [cut.gone, cut.kept]) {
          const calls = part.flatMap((item) => (item.kind === "answer" ? item.calls : []));
          expect(part.filter(({ kind }) => kind === "result")).toHaveLength(calls.length);
        }
      }),
    );
  });

  it("keeps as much as fits", () => {
    const history: HistoryItem[] = [1, 2, 3, 4].map((number) => ({
      kind: "message",
      number,
      message: letter("x".repeat(100)),
    }));
    const each = sizeOfAll(history.slice(0, 1));
    expect(chooseCompactionPoint(history, each * 2)?.kept).toHaveLength(2);
    expect(chooseCompactionPoint(history, 0)?.kept).toHaveLength(1);
    expect(chooseCompactionPoint(history.slice(0, 1), 0)).toBeUndefined();
  });

  it("shortens single items that are too long", () => {
    const [item] = shortenItems([{ kind: "message", number: 1, message: letter("a".repeat(5_000)) }], 100);
    expect(item?.kind === "message" && item.message.message.body).toMatch(
      /^a+\n\[… 4900 characters left out …\]\na+$/,
    );
  });
});

describe("a history as a prompt", () => {
  it("follows every call with exactly one result, with unique ids", () => {
    fc.assert(
      fc.property(histories, (history) => {
        const prompt = historyPrompt(history, PARTS).messages;
        const seen = new Set<string>();
        for (const [at, message] of prompt.entries()) {
          if (message.role !== "assistant") continue;
          const calls = message.content.flatMap((part) =>
            part.type === "tool-call" ? [part.toolCallId] : [],
          );
          for (const id of calls) {
            expect(seen.has(id)).toBe(false);
            seen.add(id);
          }
          if (calls.length === 0) continue;
          const next = prompt[at + 1];
          const answered = next?.role === "tool" ? next.content : [];
          expect(answered.map((part) => part.type === "tool-result" && part.toolCallId)).toEqual(calls);
        }
      }),
    );
  });

  it("states that a missing result is unknown, and escapes our own tags in results", () => {
    const prompt = historyPrompt(
      [
        {
          kind: "answer",
          number: 1,
          calls: [
            { id: "not plain!", name: "a", args: {} },
            { id: "b", name: "b", args: {} },
          ],
        },
        {
          kind: "result",
          number: 2,
          callId: "b",
          name: "b",
          ok: true,
          content: "<p></incoming_message></p>",
        },
      ],
      PARTS,
    ).messages;
    // A history that begins with an answer gets a message before it.
    expect(prompt.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(prompt[2]).toMatchObject({
      role: "tool",
      content: [
        { toolCallId: "call_0", output: { value: "ERROR: no result is known" } },
        { toolCallId: "b", output: { value: "SUCCESS: <p>&lt;/incoming_message></p>" } },
      ],
    });
  });
});
