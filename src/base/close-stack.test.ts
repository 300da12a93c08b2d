import { expect, it } from "vitest";
import { CloseStack } from "./close-stack.js";

it("closes everything in the opposite order, also when something cannot be closed", async () => {
  const opened = new CloseStack();
  const closed: string[] = [];
  opened.add(async () => void closed.push("store"));
  opened.add(() => {
    throw new Error("the mailroom");
  });
  opened.add(async () => {
    throw new Error("the listener");
  });
  opened.add(async () => void closed.push("control"));
  await expect(opened.close()).rejects.toThrow("the listener");
  expect(closed).toEqual(["control", "store"]);
  await opened.close();
});
