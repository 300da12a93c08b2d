/** Marks the requests that came through the control socket. */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Authenticator, type AuthResult, devAuthenticator } from "../../auth/index.js";

/**
 * A caller that can open the control socket is local admin (decision C4). It could issue itself a token for any
 * caller, so it may act as one: `role:id`. The mark is kept beside the request and not in it: any client could send a
 * header, and the agents would receive it as their caller's credential.
 */
export class ControlContext {
  readonly #speaker = new AsyncLocalStorage<{ readonly as: string }>();
  readonly #byName = devAuthenticator();
  #inside = 0;

  /**
   * Does the work of a request. The returned function is called when the request has ended: as long as the
   * storage is in use, Node follows every promise of the process, which slows down all requests and not only these.
   */
  run(as: string | undefined, work: () => void): () => void {
    this.#inside++;
    let over = false;
    this.#speaker.run({ as: as ?? "admin:local" }, work);
    return () => {
      if (over) return;
      over = true;
      this.#inside--;
      if (this.#inside === 0) this.#speaker.disable();
    };
  }

  /** Recognizes callers of the socket; passes all others to `others`. */
  before(others: Authenticator): Authenticator {
    return {
      onRevoked: (listener) => others.onRevoked?.(listener) ?? (() => {}),
      authenticate: (bearer): Promise<AuthResult> => {
        const speaker = this.#speaker.getStore();
        return speaker === undefined ? others.authenticate(bearer) : this.#byName.authenticate(speaker.as);
      },
    };
  }
}
