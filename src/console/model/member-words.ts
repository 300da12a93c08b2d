/** Members of a conversation: what each may do, and who sees a turn, in words. */
import type { Permissions, Visibility } from "../../client/index.js";

/** Such as "sees everything since joining; may write, not invite or remove". */
export function rightsOf(permissions: Permissions): string {
  const acts: readonly (readonly [may: boolean, act: string])[] = [
    [permissions.canSend, "write"],
    [permissions.canCreateThreads, "start threads"],
    [permissions.canInvite, "invite"],
    [permissions.canRemove, "remove"],
  ];
  const may = acts.filter(([yes]) => yes).map(([, act]) => act);
  const not = acts.filter(([yes]) => !yes).map(([, act]) => act);
  const words = [
    ...(may.length > 0 ? [`may ${listed(may, "and")}`] : []),
    ...(not.length > 0 ? [`${may.length > 0 ? "not" : "may not"} ${listed(not, "or")}`] : []),
  ];
  return `${sightOf(permissions)}; ${words.join(", ")}`;
}

function sightOf({ canObserve, canSeeInternal, historyAccess }: Permissions): string {
  if (!canObserve) return "sees only its own turns";
  const internal = canSeeInternal ? ", internal turns too" : "";
  switch (historyAccess) {
    case "full":
      return `sees everything${internal}`;
    case "from-join":
      return `sees everything since joining${internal}`;
    default:
      return `sees what is said while connected, no history${internal}`;
  }
}

/** Who sees a turn; undefined if everybody does. Its author always does. */
export function audienceOf(visibility: Visibility | undefined, author: string): string | undefined {
  switch (visibility?.type) {
    case undefined:
    case "all":
      return undefined;
    case "participants":
      return [...new Set([...(visibility.ids ?? []), author])].join(", ");
    case "role":
      return `${listed(
        (visibility.roles ?? []).map((role) => `${role}s`),
        "and",
      )}, ${author}`;
    default:
      return author;
  }
}

function listed(words: readonly string[], last: "and" | "or"): string {
  const rest = words.slice(0, -1).join(", ");
  return rest === "" ? (words[0] ?? "") : `${rest} ${last} ${words.at(-1)}`;
}
