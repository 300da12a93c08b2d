import { expect, it } from "vitest";
import { type TokenData, WrittenTexts } from "./written-texts.js";

function textsOf(...tokens: TokenData[]) {
  const texts = new WrittenTexts();
  for (const token of tokens) texts.add(token);
  return texts.all;
}

const answer = { agent: "a", tool: "task_complete", call_id: "1" };

it("texts grow with their pieces, by agent and call", () => {
  expect(
    textsOf(
      { agent: "a", offset: 0, delta: "Let me" },
      { ...answer, offset: 0, delta: "It is" },
      { agent: "a", offset: 6, delta: " see" },
      { ...answer, offset: 5, delta: " late" },
    ),
  ).toEqual([
    { agent: "a", text: "Let me see" },
    { agent: "a", tool: "task_complete", text: "It is late" },
  ]);
});

it("a piece that is repeated adds nothing, and one that begins again replaces", () => {
  const pieces = [
    { ...answer, offset: 0, delta: "It is" },
    { ...answer, offset: 5, delta: " late" },
  ];
  expect(textsOf(...pieces, ...pieces)).toMatchObject([{ text: "It is late" }]);
  expect(textsOf(...pieces, { ...answer, offset: 0, delta: "No" })).toMatchObject([{ text: "No" }]);
});

it("a mark ends all texts of its agent", () => {
  expect(
    textsOf(
      { ...answer, offset: 0, delta: "wrong" },
      { agent: "b", offset: 0, delta: "kept" },
      { agent: "a", offset: 0, delta: "", reset: true },
    ),
  ).toEqual([{ agent: "b", text: "kept" }]);
});

it("text after a gap is left out", () => {
  expect(
    textsOf({ ...answer, offset: 0, delta: "It" }, { ...answer, offset: 5, delta: "late" }),
  ).toMatchObject([{ text: "It" }]);
});

it("pieces of servers that send no offset are appended", () => {
  expect(textsOf({ agent: "a", delta: "sun" }, { agent: "a", delta: "ny" })).toEqual([
    { agent: "a", text: "sunny" },
  ]);
});
