/** What is shown when something is not there. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, callerName } from "../../data/api.js";
import { Copy } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";

interface ErrorProps {
  readonly error: Error;
  /** A task was asked for. Whether it is missing or somebody else's is not told. */
  readonly task?: boolean;
  readonly onRetry?: () => void;
}

export function ErrorState({ error, task = false, onRetry }: ErrorProps) {
  const status = error instanceof ApiError ? error.status : 0;
  const wait = error instanceof ApiError ? error.retryAfter : undefined;
  const [left, setLeft] = useState(wait ?? 0);
  useEffect(() => {
    if (wait === undefined || onRetry === undefined) return;
    const timer = setInterval(() => setLeft((seconds) => seconds - 1), 1_000);
    const again = setTimeout(onRetry, wait * 1_000);
    return () => {
      clearInterval(timer);
      clearTimeout(again);
    };
  }, [error]);
  const [title, words] =
    status === 404
      ? ["Not found", task ? "There is no such task, or it is not yours." : error.message]
      : status === 403
        ? ["Not allowed", `${error.message} You are ${callerName()}.`]
        : status === 429 || status === 503
          ? ["The server is busy", `${error.message}${left > 0 ? ` The page tries again in ${left} s.` : ""}`]
          : status === 0
            ? [
                "The server cannot be reached",
                "What is loaded stays readable. The page tries again by itself.",
              ]
            : ["This did not work", error.message];
  const id = error instanceof ApiError ? error.requestId : undefined;
  return (
    <div class="empty" role="alert">
      <h2>{title}</h2>
      <p>
        <Text>{words}</Text>
      </p>
      {id !== undefined && <p class="mono dim">request {id}</p>}
      {onRetry !== undefined && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** An error of the page itself: the frame lives, the screen is replaced. */
export function Broken({ error, onRetry }: { readonly error: Error; readonly onRetry: () => void }) {
  const report = `${error.name}: ${error.message}\n${error.stack ?? ""}\n${location.pathname}\n${navigator.userAgent}`;
  return (
    <div class="empty" role="alert">
      <h2>This screen has a fault</h2>
      <p>The rest of the page works. Please report this, with the text that the button copies.</p>
      <p class="mono dim">
        <Text>{error.message.slice(0, 300)}</Text>
      </p>
      <div class="row-of">
        <Copy text={report} label="Copy the report" />
        <button type="button" class="button small" onClick={onRetry}>
          Show it again
        </button>
      </div>
    </div>
  );
}

/** Nothing at first: a spinner for some milliseconds is a flicker. */
export function Waiting({ what = "Loading" }: { readonly what?: string }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 300);
    return () => clearTimeout(timer);
  }, []);
  return <div class="empty">{late && <p class="pulse">{what}</p>}</div>;
}
