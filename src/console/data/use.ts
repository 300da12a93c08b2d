/** Something of the server, read when a screen opens and again when asked or after a while. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, type RequestOptions, request } from "./api.js";

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: Error | undefined;
  readonly again: () => void;
}

export function useRequest<T>(
  path: string | undefined,
  query: RequestOptions["query"] = {},
  every = 0,
): Loaded<T> {
  const [value, setValue] = useState<T | undefined>(undefined);
  const [error, setError] = useState<Error | undefined>(undefined);
  const [count, setCount] = useState(0);
  const key = JSON.stringify(query);
  useEffect(() => {
    if (path === undefined) return;
    const stop = new AbortController();
    const load = () =>
      request<T>(path, { query, signal: stop.signal }).then(
        (answer) => {
          setValue(answer);
          setError(undefined);
        },
        (failed: unknown) => {
          if (stop.signal.aborted || (failed instanceof ApiError && failed.status === 401)) return;
          setError(failed instanceof Error ? failed : new Error(String(failed)));
        },
      );
    void load();
    const timer = every === 0 ? undefined : setInterval(() => void (document.hidden || load()), every);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [path, key, every, count]);
  return { value, error, again: () => setCount((before) => before + 1) };
}
