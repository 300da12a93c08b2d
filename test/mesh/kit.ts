/** For tests with real processes. */
import { createServer } from "node:net";
import { expect } from "vitest";

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Asks again until the answer is as it should be; the test's own time limit ends it otherwise. */
export async function eventually(ask: () => Promise<unknown>, expected: unknown): Promise<void> {
  for (;;) {
    const answer = await ask();
    try {
      expect(answer).toEqual(expected);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}
