import { describe, expect, it } from "vitest";
import { COMMANDS, complete, findCommand } from "./table.js";

describe("Tab", () => {
  it("completion offers commands that start with the input, and all for an empty line", () => {
    expect(complete("task-")).toEqual([expect.arrayContaining(["task-get "]), "task-"]);
    expect(complete("task-")[0].every((offer) => offer.startsWith("task-"))).toBe(true);
    expect(complete("ex")).toEqual([["exit "], "ex"]);
    expect(complete("")[0]).toHaveLength(COMMANDS.length + 3);
  });

  it("completion offers only commands", () => {
    for (const offer of complete("")[0]) {
      if (["help ", "exit ", "quit "].includes(offer)) continue;
      expect(findCommand(offer.trim()).name).toBe(offer.trim());
    }
    expect(complete("post hello")).toEqual([[], "post hello"]);
  });
});
