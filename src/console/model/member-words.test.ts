import { describe, expect, it } from "vitest";
import type { Permissions, Visibility } from "../../client/index.js";
import { audienceOf, rightsOf } from "./member-words.js";

const ALL: Permissions = {
  canSend: true,
  canObserve: true,
  canInvite: true,
  canRemove: true,
  canCreateThreads: true,
  canSeeInternal: true,
  historyAccess: "full",
};
const NONE = { canSend: false, canCreateThreads: false, canInvite: false, canRemove: false };

describe("members in words", () => {
  it.each<[Partial<Permissions>, string]>([
    [{}, "sees everything, internal turns too; may write, start threads, invite and remove"],
    [
      { canInvite: false, canRemove: false, canSeeInternal: false, historyAccess: "from-join" },
      "sees everything since joining; may write and start threads, not invite or remove",
    ],
    [
      { ...NONE, canSeeInternal: false, historyAccess: "none" },
      "sees what is said while connected, no history; may not write, start threads, invite or remove",
    ],
    [
      { ...NONE, canSend: true, canObserve: false },
      "sees only its own turns; may write, not start threads, invite or remove",
    ],
  ])("%#: tells what a member sees and may do", (changes, words) => {
    expect(rightsOf({ ...ALL, ...changes })).toBe(words);
  });

  it.each<[Visibility | undefined, string | undefined]>([
    [undefined, undefined],
    [{ type: "all" }, undefined],
    [{ type: "participants", ids: ["cook"] }, "cook, ann"],
    [{ type: "participants", ids: ["ann", "cook"] }, "ann, cook"],
    [{ type: "role", roles: ["worker", "moderator"] }, "workers and moderators, ann"],
    [{ type: "private" }, "ann"],
  ])("%#: tells who sees a turn", (visibility, words) => {
    expect(audienceOf(visibility, "ann")).toBe(words);
  });
});
