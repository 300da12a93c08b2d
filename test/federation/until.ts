/** Polls, because another process sends no notification. */
export async function until<T>(
  ask: () => Promise<T | undefined> | T | undefined,
  what = "it",
  ms = 50_000,
): Promise<T> {
  const deadline = Date.now() + ms;
  for (;;) {
    const found = await ask();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`${what} did not happen within ${ms} ms`);
    await new Promise<void>((resolve) => setTimeout(resolve, 10));
  }
}
