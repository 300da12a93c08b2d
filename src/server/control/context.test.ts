import { AsyncResource } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import type { Authenticator } from "../../auth/index.js";
import { ControlContext } from "./context.js";

const nobody: Authenticator = {
  authenticate: async () => ({ ok: false, reason: "unknown", detail: "invalid API key" }),
};

describe("the control socket's callers", () => {
  it("are local admin, or whom they name; everybody else is asked for a credential", async () => {
    const context = new ControlContext();
    const authenticator = context.before(nobody);
    const inside = (as?: string) =>
      new Promise((resolve) => context.run(as, () => resolve(authenticator.authenticate("anything"))));
    expect(await inside()).toMatchObject({ ok: true, principal: { role: "admin", id: "local" } });
    expect(await inside("user:ann")).toMatchObject({ ok: true, principal: { role: "user", id: "ann" } });
    expect(await inside("nonsense")).toMatchObject({ ok: false });
    // The text of a bearer alone opens nothing.
    expect(await authenticator.authenticate("admin:local")).toMatchObject({ ok: false });
  });

  it("stay apart when they come at the same time", async () => {
    const context = new ControlContext();
    const authenticator = context.before(nobody);
    const later = async () => {
      await new Promise(setImmediate);
      return authenticator.authenticate(undefined);
    };
    const results = await Promise.all(
      ["user:a", "user:b"].map((as) => new Promise((resolve) => context.run(as, () => resolve(later())))),
    );
    expect(results).toMatchObject([{ principal: { id: "a" } }, { principal: { id: "b" } }]);
  });

  it("stay known until their own request is over, also when another one is over before", async () => {
    const context = new ControlContext();
    const authenticator = context.before(nobody);
    const enter = (as: string) => {
      let ask: () => Promise<unknown> = async () => undefined;
      const leave = context.run(as, () => {
        ask = AsyncResource.bind(() => authenticator.authenticate(undefined));
      });
      return { leave, ask: () => ask() };
    };
    const first = enter("user:a");
    const second = enter("user:b");
    first.leave();
    first.leave();
    expect(await second.ask()).toMatchObject({ ok: true, principal: { id: "b" } });
    second.leave();
    const third = enter("user:c");
    expect(await third.ask()).toMatchObject({ ok: true, principal: { id: "c" } });
    expect(await authenticator.authenticate(undefined)).toMatchObject({ ok: false });
  });
});
