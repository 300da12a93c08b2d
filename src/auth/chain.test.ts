import { describe, expect, it } from "vitest";
import { chain } from "./chain.js";
import {
  type Authenticator,
  type AuthFailureReason,
  failure,
  INVALID_ROLE,
  principalFrom,
} from "./result.js";

/** Accepts one credential; records what it was shown. */
function provider(known: string, otherwise = failure("unknown"), prefix?: string) {
  const shown: string[] = [];
  const authenticator: Authenticator = {
    async authenticate(bearer) {
      shown.push(bearer ?? "");
      return bearer === known ? principalFrom("jwt", { role: "user", id: known }) : otherwise;
    },
    ...(prefix === undefined ? {} : { recognises: (bearer: string) => bearer.startsWith(prefix) }),
  };
  return { authenticator, shown };
}

describe("chain", () => {
  it("asks providers until one authenticates the caller", async () => {
    const [first, second, third] = [provider("a"), provider("b"), provider("c")];
    const all = chain(first.authenticator, second.authenticator, third.authenticator);
    expect(await all.authenticate("b")).toMatchObject({ ok: true, principal: { id: "b" } });
    expect(third.shown).toEqual([]);
  });

  it("shows a credential only to its evident issuer, whatever the order", async () => {
    const stranger = provider("s");
    const issuer = provider("mr_good", failure("unknown"), "mr_");
    const all = chain(stranger.authenticator, issuer.authenticator);
    expect(await all.authenticate("mr_good")).toMatchObject({ ok: true });
    expect(await all.authenticate("mr_bad")).toMatchObject({ reason: "unknown" });
    expect(stranger.shown).toEqual([]);
  });

  it("returns the most informative failure", async () => {
    const reasonWith = async (...reasons: AuthFailureReason[]) => {
      const result = await chain(...reasons.map((r) => provider("x", failure(r)).authenticator)).authenticate(
        "y",
      );
      return result.ok ? "ok" : result.reason;
    };
    expect(await reasonWith("unknown", "unavailable", "expired")).toBe("unavailable");
    expect(await reasonWith("unknown", "expired")).toBe("expired");
    expect(await reasonWith("unknown", "bad_format")).toBe("unknown");
    const all = chain(provider("x").authenticator, provider("x", INVALID_ROLE).authenticator);
    expect(await all.authenticate("y")).toMatchObject({ detail: "invalid role" });
  });

  it("asks no provider without a credential", async () => {
    const one = provider("a");
    expect(await chain(one.authenticator).authenticate(undefined)).toMatchObject({
      reason: "missing",
      detail: "no API key provided",
    });
    expect(await chain(one.authenticator).authenticate("a b")).toMatchObject({ reason: "bad_format" });
    expect(one.shown).toEqual([]);
  });
});
