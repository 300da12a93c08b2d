/** Places for requests that read contents of tasks: a few of one caller at once, each beginning in a turn of its own. */
import type { ServerResponse } from "node:http";
import { MailroomError } from "../base/index.js";
import { onDisconnect } from "../base/node.js";
import type { NextTurn } from "../extension/index.js";
import type { HttpContext } from "./context.js";

/**
 * Resolves when the caller may read, with a function that waits for its next turn. The place is held until the response
 * is sent; a client that takes nothing of it for `limits.stream_stall_timeout` is disconnected.
 * @throws MailroomError `overloaded` when too many wait
 */
export async function takeReadingPlace(
  context: HttpContext,
  caller: string,
  response: ServerResponse,
): Promise<NextTurn> {
  const release = await context.wholeTasks.take(caller);
  let left = false;
  onDisconnect(response, () => {
    left = true;
    release();
  });
  if (left) throw new MailroomError("aborted", "the client has left");
  disconnectUnread(context, response);
  await context.turns.whole(caller);
  return async () => context.turns.whole(caller);
}

function disconnectUnread({ clock, limits, metrics }: HttpContext, response: ServerResponse): void {
  let waiting = 0;
  let cancel = () => {};
  const check = () => {
    const { writableLength } = response;
    if (writableLength > 0 && writableLength === waiting) {
      metrics.droppedListener();
      response.destroy();
      return;
    }
    waiting = writableLength;
    cancel = clock.after(limits.streamStallTimeout, check);
  };
  check();
  onDisconnect(response, () => cancel());
}
